"""What specs need: the graph around one of them, and which satisfy what is asked of it."""
