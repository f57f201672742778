"""DL2: a learned scheduler that hands out one task at a time (Peng et al., arXiv 1909.06040).

What a policy sees and does lies here, a thing a file: ``encoding`` (state, mask), ``network``, ``policy`` (a slot's
repeated inference), ``warm_up`` (labels of a teacher, cross-entropy), ``actor_critic``, ``progress``, ``pace``,
``all_actions``, ``replay``, ``exploration``, ``checkpoint``. The training that runs the simulator is
``graphcost.sim.learning``. All but ``encoding``, ``replay`` and ``exploration`` need torch (extra ``torch``);
importing this package does not.
"""
