from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from robustbench_elliptical.core.errors import UnknownNameError, UsageError
from robustbench_elliptical.core.registry import Registry
from robustbench_elliptical.core.resources import shipped
from robustbench_elliptical.core.settings import validated


def test_registry_keeps_order_and_refuses_twice():
    registry: Registry[int] = Registry("attack")
    registry.add("pgd", 1)
    registry.add("fgsm", 2)
    assert registry.names() == ["pgd", "fgsm"] == list(registry)
    assert len(registry) == 2
    assert "pgd" in registry
    with pytest.raises(KeyError, match=r"attack 'pgd' is registered twice: 1 and 3"):
        registry.add("pgd", 3)


def test_decorator_hands_its_object_back():
    registry: Registry[str] = Registry("attack")

    @registry.decorate("f", lambda function: function.__name__)
    def function():
        return 7

    assert function() == 7
    assert registry["f"] == "function"


def test_unknown_names_suggest_neighbours_or_list_all():
    registry: Registry[int] = Registry("attack")
    registry.add("pgd", 1)
    registry.add("spsa", 2)
    with pytest.raises(UnknownNameError, match=r"unknown attack 'pdg': did you mean 'pgd'\?"):
        registry["pdg"]
    with pytest.raises(UsageError, match=r"unknown attack 'zzzz': known: pgd, spsa\."):
        registry["zzzz"]
    with pytest.raises(UsageError, match=r"known: none\."):
        Registry("attack")["x"]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")
    steps: int = Field(ge=1)
    norm: Literal["linf", "l2"] = "linf"

    @model_validator(mode="after")
    def _together(self):
        if self.steps == 13:
            raise ValueError("Steps must not be unlucky")
        return self


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "attack x: steps: field required"),
        ({"steps": "0"}, "attack x: steps: input should be greater than or equal to 1, got '0'"),
        ({"steps": 1, "norm": "l3"}, "attack x: norm: input should be 'linf' or 'l2', got 'l3'"),
        ({"steps": 1, "stpes": 2}, "unknown setting of attack x 'stpes': did you mean 'steps'?"),
        ({"steps": 13}, "attack x: steps must not be unlucky"),
    ],
)
def test_validation_messages(values, message):
    with pytest.raises(UsageError) as caught:
        validated(_Settings, values, "attack x")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_validated_coerces_text():
    assert validated(_Settings, {"steps": "3"}, "attack x").steps == 3


def test_shipped_folders_exist():
    assert (shipped("reports/templates") / "run.md.j2").is_file()
    with pytest.raises(FileNotFoundError, match="'models/nothing' is missing"):
        shipped("models/nothing")
