"""What only Datasette 0.65 needs. From 1.0 on it does this itself, and this room can go."""
