"""DL2's training: a policy learns from a teacher, then from the simulator (torch, an extra)."""
