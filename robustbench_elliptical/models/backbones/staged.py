"""Networks whose blocks come in stages; from stage to stage tokens get fewer and wider."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from torch import Tensor, nn

from robustbench_elliptical.core.errors import UsageError
from robustbench_elliptical.models.attention import AUXILIARY_LOSS, State
from robustbench_elliptical.models.backbones.blocks import StateBlock
from robustbench_elliptical.models.backbones.network import AttentionNetwork, BlockTrace

__all__ = ["StagedNetwork"]


class StagedNetwork(AttentionNetwork, nn.Module):
    """Stages of blocks that see patches only.

    What one block hands to the next stays within its stage: tokens of the next one have another
    shape. Only the losses that mechanisms add up go on.

    Parameters
    ----------
    image_size, channels
        Of the images.
    """

    num_prefix_tokens = 0

    def __init__(self, image_size: int, channels: int) -> None:
        super().__init__()
        self.input_shape = (channels, image_size, image_size)
        self.pools = nn.ModuleList()
        """What tokens go through from one stage to the next, one fewer than stages."""

    @property
    @abstractmethod
    def stages(self) -> Sequence[Iterable[nn.Module]]:
        """The blocks of each stage, each a `StateBlock`."""

    @abstractmethod
    def tokens_of(self, images: Tensor) -> Tensor:
        """Return the tokens of images of the right shape, shape (batch, tokens, dim)."""

    @abstractmethod
    def classify(self, tokens: Tensor) -> Tensor:
        """Return logits, shape (batch, classes), of what the last block gave."""

    def embed(self, images: Tensor) -> Tensor:
        """Return the tokens that enter the first block, shape (batch, tokens, dim).

        Raises
        ------
        UsageError
            If the images have another shape than the network was built for.
        """
        if tuple(images.shape[1:]) != self.input_shape:
            expected = ", ".join(map(str, self.input_shape))
            raise UsageError(
                f"the network was built for images of shape (batch, {expected}), "
                f"got {tuple(images.shape)}; resize them"
            )
        return self.tokens_of(images)

    def forward(self, images: Tensor, sample_keys: Tensor | None = None) -> Tensor:
        """Return logits, shape (batch, classes), of normalised images (batch, channels, h, w)."""
        tokens = self.embed(images)
        state: State = {}
        for index, blocks in enumerate(self.stages):
            tokens, state = self._enter(index, tokens, state)
            for block in blocks:
                tokens, state = block(tokens, state, sample_keys)
        return self.classify(tokens)

    def trace(
        self, images: Tensor, sample_keys: Tensor | None = None
    ) -> tuple[Tensor, list[BlockTrace]]:
        """Return the logits by the explicit path and what each block did."""
        tokens = self.embed(images)
        state: State = {}
        traces: list[BlockTrace] = []
        for index, blocks in enumerate(self.stages):
            tokens, state = self._enter(index, tokens, state)
            for block in blocks:
                assert isinstance(block, StateBlock)
                traces.append(block.trace(tokens, state, sample_keys))
                tokens, state = traces[-1].tokens, traces[-1].state
        return self.classify(tokens), traces

    def _enter(self, stage: int, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        if not stage:
            return tokens, state
        kept = {name: each for name, each in state.items() if name == AUXILIARY_LOSS}
        return self.pools[stage - 1](tokens), kept
