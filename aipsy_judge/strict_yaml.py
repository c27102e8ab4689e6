"""YAML read strictly: a key that is written twice is an error."""

from __future__ import annotations

from typing import Any

import yaml


def load_yaml(text: str) -> Any:
    """The data of a YAML document. Raises yaml.YAMLError where it is none, or a mapping has a key twice.

    >>> load_yaml("{a: 1, b: 2}")
    {'a': 1, 'b': 2}
    """
    return yaml.load(text, Loader=_UniqueKeyLoader)


class _UniqueKeyLoader(yaml.SafeLoader):
    """Plain YAML keeps the last of two equal keys silently, so that a value could be overridden unseen."""


def _unique_mapping(loader: _UniqueKeyLoader, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
    keys = [loader.construct_object(k, deep=True) for k, _ in node.value]
    twice = sorted({str(k) for k in keys if keys.count(k) > 1})
    if twice:
        raise yaml.constructor.ConstructorError(None, None, f"key written twice: {', '.join(twice)}", node.start_mark)
    return dict(loader.construct_mapping(node, deep))


_UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)
