"""How cost grows: what is measured, each point in a process of its own, and the picture and table of it."""
