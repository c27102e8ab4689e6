"""YAML read strictly: a key that is written twice is an error, and whatever cannot be read is one kind of error."""

from __future__ import annotations

from typing import Any

import yaml


def load_yaml(text: str) -> Any:
    """The data of a YAML document. Raises yaml.YAMLError where it is none, or a mapping has a key twice.

    What the library itself trips over (a 13th month, a number of 5000 digits, `!!int x`, brackets a thousand deep) is a
    YAMLError too.

    >>> load_yaml("{a: 1, b: 2}")
    {'a': 1, 'b': 2}
    """
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)
    except RecursionError:
        raise yaml.YAMLError("nested too deeply") from None
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise yaml.YAMLError(f"a value that its type cannot hold: {error}") from error


class _UniqueKeyLoader(yaml.SafeLoader):
    """Plain YAML keeps the last of two equal keys silently, so that a value could be overridden unseen."""


def _unique_mapping(loader: _UniqueKeyLoader, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
    keys = [loader.construct_object(k, deep=True) for k, _ in node.value]
    twice = sorted({str(k) for k in keys if keys.count(k) > 1})
    if twice:
        raise yaml.constructor.ConstructorError(None, None, f"key written twice: {', '.join(twice)}", node.start_mark)
    return dict(loader.construct_mapping(node, deep))


_UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)
