"""How well communication is predicted where the single-GPU step is known: see ``__main__``."""
