"""Receivers are settings of a session: no run records them, and only searches have them."""

import pytest

from dgm.api.arguments import use_settings
from dgm.config import Settings, resolve
from dgm.errors import UserError


def test_no_record_of_settings_holds_a_receiver() -> None:
    settings = resolve(None, {"sinks.to": ["mlflow:"], "notify.to": ["ntfy://topic"]}, {})
    assert settings.notify.to == ("ntfy://topic",)
    assert settings.model_dump(mode="json") == Settings().model_dump(mode="json")


def test_a_folder_of_a_settings_file_is_relative_to_it(tmp_path) -> None:
    file = tmp_path / "search.toml"
    file.write_text('[sinks]\nto = ["tensorboard:tb", "wandb:a/b", "mlflow:http://host"]\n')
    assert resolve(file, {}, {}).sinks.to == (f"tensorboard:{tmp_path}/tb", "wandb:a/b", "mlflow:http://host")


@pytest.mark.parametrize(
    "setting", [{"sinks.to": ["mlflow:"]}, {"notify.to": ["ntfy://x"]}, {"notify.on_event": "true"}]
)
def test_what_is_no_search_refuses_receivers(setting) -> None:
    with pytest.raises(UserError, match="only searches"), use_settings(setting):
        pass
