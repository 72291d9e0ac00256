"""torch.compile on every registered mechanism; a file of its own, as tracing takes its time."""

import pytest
import torch

from robustbench_elliptical.models.attention import (
    MECHANISMS,
    HeadInputs,
    LayerShape,
    build_mechanism,
)

# Few steps where loops are unrolled; what elliptical must be told.
SETTINGS = {
    "elliptical": {"scaling": "max"},
    "lightning": {"block": 4},
    "neighborhood": {"layout": "sequence"},
    "nystromformer": {"landmarks": 3, "iterations": 2},
    "performer": {"features": 8},
    "spkde": {"iterations": 2},
}
LAYER = LayerShape(dim=8, num_heads=2, head_dim=4, index=1, depth=3, num_tokens=6)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_compiled_is_the_same(name):
    """Dynamo traces it; without code generation, which is not ours and needs a C++ compiler."""
    generator = torch.Generator().manual_seed(0)
    query, key, value, previous = torch.randn(4, 2, 2, 6, 4, generator=generator)
    tokens = torch.randn(2, 6, 8, generator=generator)
    inputs = HeadInputs(query, key, value, tokens, sample_keys=torch.arange(2))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        mechanism = build_mechanism(name, LAYER, SETTINGS.get(name, {})).eval()
    torch._dynamo.reset()
    with torch.no_grad():
        compiled = torch.compile(mechanism, backend="eager", dynamic=False)
        output = compiled(inputs, {"values": previous})[0]
        expected = mechanism(inputs, {"values": previous})[0]
    assert torch.allclose(output, expected, rtol=1e-5, atol=1e-6)
