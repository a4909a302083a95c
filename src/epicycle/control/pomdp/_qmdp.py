"""`qmdp`: act as if the state were seen from the next step on."""

from __future__ import annotations

from epicycle.control.pomdp._informed_bound import observed_values, of_upper_bound
from epicycle.control.pomdp._pomdp import POMDP
from epicycle.control.pomdp._pomdp_solution import POMDP_DOCS, POMDPSolution, check
from epicycle.core.estimator import in_catalogue


@in_catalogue("control", "G7", certificate="Bellman residual", docs=POMDP_DOCS)
def qmdp(pomdp: POMDP) -> POMDPSolution:
    r"""Act as if the state were seen from the next step on.

    .. math:: Q(s, a) = R(s, a) + \gamma \sum_{s'} P_{sa}(s') V_{\mathrm{MDP}}(s'), \qquad
              \pi(b) = \arg\max_a \sum_s b(s) Q(s, a)

    The maximum is an upper bound of all values. The policy never pays for information.

    Returns
    -------
    POMDPSolution
        The lower bound is that of always the same action, which the policy need not attain.

    Examples
    --------
    >>> from epicycle.control import qmdp, worlds
    >>> tiger = worlds.tiger()
    >>> solution = qmdp(tiger)
    >>> float(solution.upper_bound(tiger.start[None]).round(2)[0])
    189.0
    """
    check("qmdp", pomdp=pomdp)
    return of_upper_bound(pomdp, observed_values(pomdp), [0.0], 1e-8)
