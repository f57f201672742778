"""Time models: PAI's framework, the roofline, links and overlap."""
