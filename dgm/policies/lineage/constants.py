"""Every constant of the policy, with its meaning; skills are on the logit scale."""

# The model: what a child takes from its parent

ROOT_VARIANCE = 1.0
"""Of the seed's skill before data; its mean is 0."""
ROOT_DRIFT_SCALE = 4.5
"""Variance of the seed's drift before data, as a multiple of that of what is new in a child's; its mean is the mean
drift."""
DRIFT_KEPT = 0.95
"""Share of the parent's drift that a child keeps; the rest comes from the mean drift."""
MEAN_DRIFT = -0.02
"""Mean drift before data: an edit is expected to harm a little."""
MEAN_DRIFT_WEIGHT = 30.0
"""Agents that the belief in ``MEAN_DRIFT`` is worth."""

# The model: verdicts

TEMPER = 0.9
"""Power of the likelihood: verdicts on one suite are not quite independent."""
REPEAT_WEIGHT = 0.5
"""What a further attempt at the same task counts."""
LEAST_INFORMATION = 1e-4
"""Floor of the information that an agent's verdicts hold."""
SKILL_LIMIT = 5.0
"""Verdicts are linearised at skills no further from 0 than this."""
DIFFICULTY_VARIANCE = 4.0
"""Of a task's difficulty before data; its mean is 0."""
DIFFICULTY_LIMIT = 6.0
NEWTON_DAMPING = 0.7
NEWTON_LIMIT = 1.0
"""The most that a difficulty moves in one step."""

# The model: broken agents

BROKEN_SOLVES = 0.01
"""How often a broken agent solves a task."""
BROKEN_RATE = 0.05
"""Share of a sound agent's children that are broken, before data."""
BROKEN_RATE_WEIGHT = 10.0
"""Children that the belief in ``BROKEN_RATE`` is worth."""
BROKEN_RATE_RANGE = (0.01, 0.9)
OFTEN_BROKEN_RATE = 0.3
"""Takes the place of ``BROKEN_RATE`` where edits turn out to break the agent often."""
CALIBRATED_AGENTS = 20
"""The most children to be tried, if they fail, on tasks that their parents solve, to learn that."""
CALIBRATION_SHARE = 1 / 40
"""Of a budget of evaluations: the most children that are."""
CALIBRATION = 3
"""A child that has so many results, and solved nothing, has failed."""
OFTEN = 8
"""Where so many of these children have failed, although their parents solve something, edits break the agent often."""
SELDOM = 5
"""Up to so many, nothing speaks for it."""
BROKEN_STAYS = 0.7
"""Share of a broken agent's children that are broken, before data."""
BROKEN_STAYS_WEIGHT = 10.0
BROKEN_STAYS_RANGE = (0.05, 0.98)
LEARNING_STEPS = 20
"""Of expectation maximisation, the most at a time where edits often break the agent; one elsewhere."""
LEARNED = 4e-3
"""The steps end when the rates together move by less than this."""
SOUND_MOVE = 0.02
"""A message is weighed anew when its sender's chance of being sound has moved by more than this."""
SOUND_RANGE = (0.02, 0.97)
"""Bounds of a sound agent's chance of solving where it is weighed against being broken."""
LEAST_SOUND = 0.02
"""A child less likely to be sound than this tells its parent nothing."""

# Inference

RELINEARISE = 0.1
"""An agent's verdicts are linearised again when its mean has moved by more than this."""
LARGEST_MOVE = 1.0
"""The most that a mean moves in one update."""
ANCHOR_MOVE = 0.02
"""The seed's skill that gains are measured from is brought up to date when it has moved by more than this."""
SETTLED = 1e-4
"""Smaller changes of a state are not passed on down the tree before the next sweep."""
SWEEP_EVERY = 20
"""Results between two sweeps."""
PENDING_INFORMATION = 0.15
"""That an evaluation under way is expected to bring."""
RETENTIONS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0)
"""Grid for the share of a gain over the seed that a child keeps."""
NOISES = (0.02, 0.045, 0.09, 0.18, 0.35, 0.6)
"""Grid for the variance of a child's skill about what was expected of it."""
DRIFT_VARIANCES = (0.0005, 0.003, 0.012)
"""Grid for the variance of what is new in a child's drift."""
DRIFT_CENTRE = 0.003
DRIFT_SPREAD = 3.0
"""Of the log-normal prior of that variance, which is nearly flat over the grid."""
RETENTION_SLOPE = 30.0
"""Of the log prior: retentions near 1 are expected."""
RETENTION_LEAST = -6.0
"""Floor of the log prior: where much of a gain is lost, any share may be. Without it a search in which children keep a
third would never learn that; with a gentler slope in its place, searches in which they keep all would doubt it."""
NOISE_CENTRE = 0.18
NOISE_SPREAD = 0.8
"""Of the log-normal prior of the noise."""

# Decisions

ROOT_BONUS = 0.3
"""Added to the seed's skill where the search compares: it is left only on evidence."""
HORIZON = 6
"""Generations that a parent is judged over."""
REACH = 1.5
"""Standard deviations: a line further behind the best agent is passed over as long as any is within reach. Far below,
what promises most is the least known, and a search would follow one failing line from newest to newest."""
PENDING_EXPANSION = 0.1
"""Taken off a parent for each of its expansions under way."""
LATER_GENERATIONS = 2.0
"""Factor on an expansion's worth: a good child has children in turn. With 1 the archive stays too small for a good end,
with 5 there are too many agents to tell apart in the first half of a budget."""
SEED_RESULTS = 60
"""On so many tasks the seed is tried at most before it has a child. Alone it has no rival that would say when its
evaluations stop paying."""
SEED_SHARE = 0.3
"""Of a budget of evaluations: the most that the seed takes before it has a child."""
EXTRA_EVALUATIONS = 0.25
"""Evaluations asked for per expansion for each evaluation that it costs beyond the first."""
LAST_SHARE = 0.1
"""Of the budget: no expansion in it."""
PROBES = (1, 2, 4, 8, 16)
"""Numbers of evaluations that are weighed against one another."""
PROBE_INFORMATION = 0.18
"""Expected of one evaluation."""
MANY_WORKERS = 8
"""From so many on, agents without a result may have children."""
FERTILITY_WEIGHT = 3.0
"""Births that the belief in an agent's fertility is worth."""
TASK_SHARE = 0.2
"""Of all results: what one task may have before its worth falls to a half. A yardstick that all agents meet makes them
comparable, but its own quirks (solved by all that work, say) would be taken for their skill."""
TASK_SHARE_POWER = 4.0
"""How sharply it falls there."""
TASK_JITTER = (0.75, 1.25)
"""Range of the random factor on a task's worth."""
HANDED_OUT_GENERATIONS = (2, 6)
HANDED_OUT_ROOT_BONUS = (0.1, -0.3)
"""Added to the seed's bound where an agent is handed out: against one of the second generation or before, the luckiest
of many; against one of the sixth or after, for which its forebears speak, too. In steps between them."""
DOUBTED_ROOT_BONUS = -0.6
"""What comes in its place, in steps from ``SELDOM`` on, where ``OFTEN`` first children have failed: which children are
better is hard to tell there, and every third search would end at a seed that its tree has overtaken. In all searches,
more of them would end below the seed where nothing helps."""
CAUTION = 1.5
"""Standard deviations that a recommendation takes off a mean."""
LEAST_RESULTS = 2
"""That an agent needs before it is handed out; one of them must be a success."""
FIT_ROUNDS = 12
"""Rounds of inference for a recommendation, which starts from nothing; the most there are."""
LEARN_EVERY = 3
"""Of these rounds, each third learns the shared parameters anew."""
FIT_MOVE = 1e-3
"""Rounds end where no skill has moved further than this from one learning to the next."""
TIE = 1e-9
"""Relative difference below which two agents promise the same: far above what rounding does, far below what a verdict
says."""
