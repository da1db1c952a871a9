"""The indexes of mirrors, brought over a network for builds that use none. Read `steps` first."""
