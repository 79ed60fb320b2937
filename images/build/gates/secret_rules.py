"""Logins, tokens and passwords in bytes, by gitleaks' rules and ours in its format (docs/decisions/065). Pure but for
reading the rules once.

What gitleaks does with a rule is done here: keywords, then `path`, `regex`, `entropy`, and what its allowlists let
pass. Its global list of paths is not used: it is of source code, and lets whole folders of a system pass.
"""

import codecs
import functools
import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from images.build.gates.go_regex import compiled

FOLDER = Path(__file__).parent / "rules"
_GENERAL = "generic-api-key"
_TEXT_BYTES = 8192
"""Where no zero byte is in that many, it is text, as git and grep have it."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LEAD = r"[\w.-]{0,50}?"
"""Many patterns begin so: it changes nothing of what is found, and `re` tries it at every byte. It is looked for
backwards from what is found."""
_MEANT = {r"(?i)^true|false|null$": r"(?i)^(?:true|false|null)$"}
"""What a pattern of gitleaks' global allowlist says → what it means: else any secret with "false" in it passes. A test
fails when upstream has mended it."""
_BEFORE = re.compile(rb"[\w.-]{0,50}\Z")


@dataclass(frozen=True, slots=True)
class Allow:
    """What is no secret though a rule finds it: any of the patterns in `target`, or any of the words in the secret."""

    target: str
    patterns: tuple[re.Pattern[bytes], ...]
    words: re.Pattern[bytes] | None
    paths: tuple[re.Pattern[bytes], ...]
    all: bool
    """Every one of the criteria must hold, not any."""

    def holds(self, path: bytes, secret: bytes, match: bytes, line: bytes) -> bool:
        """Whether it lets this finding pass."""
        text = {"match": match, "line": line}.get(self.target, secret)
        criteria = []
        if self.paths:
            criteria.append(any(pattern.search(path) for pattern in self.paths))
        if self.patterns:
            criteria.append(any(pattern.search(text) for pattern in self.patterns))
        if self.words:
            criteria.append(self.words.search(secret.lower()) is not None)
        return bool(criteria) and (all(criteria) if self.all else any(criteria))


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of gitleaks; without a pattern the path alone says it."""

    id: str
    keywords: tuple[bytes, ...]
    path: re.Pattern[bytes] | None
    pattern: re.Pattern[bytes] | None
    group: int
    """Of the pattern, that is the secret; 0: the first that matched, or all."""
    entropy: float
    """Bits of each character, at least."""
    allows: tuple[Allow, ...]

    def found(self, path: bytes, data: bytes) -> bool:
        """Whether a file of that path and content has what the rule is about."""
        if self.path and not self.path.search(path):
            return False
        return self.pattern is None or any(self._is_secret(path, data, match) for match in self.pattern.finditer(data))

    def _is_secret(self, path: bytes, data: bytes, match: re.Match[bytes]) -> bool:
        groups = [group for group in match.groups() if group]
        secret = match[self.group] if self.group else groups[0] if groups else match[0]
        if entropy(secret) <= self.entropy:
            return False
        line = data[data.rfind(b"\n", 0, match.start()) + 1 :].partition(b"\n")[0]
        before = _BEFORE.search(data[max(match.start() - 50, 0) : match.start()])
        whole = (before[0] if before else b"") + match[0]
        return not any(allow.holds(path, secret, whole, line) for allow in self.allows)


def secrets(path: str, data: bytes) -> tuple[str, ...]:
    """The ids of the rules that find something in a file, sorted; the general one only where no other does.

    Of programs and other binary files only the path is looked at.
    """
    name, data = path.encode(errors="surrogateescape"), _utf8(data)
    asked = {rule.id: rule for rule in _by_path()}
    if b"\0" not in data[:_TEXT_BYTES]:
        lower = data.lower()
        asked |= {rule.id: rule for keyword, named in _by_keyword().items() if keyword in lower for rule in named}
    found = sorted(rule.id for rule in asked.values() if rule.found(name, data))
    return tuple(rule for rule in found if rule != _GENERAL or len(found) == 1)


def _utf8(data: bytes) -> bytes:
    """Text in UTF-16 as all other text is; by its mark, which Windows' editors write."""
    if not data.startswith(_UTF16):
        return data
    return data.decode("utf-16", errors="replace").encode()


def entropy(data: bytes) -> float:
    """Shannon's, in bits of each byte."""
    return -sum(count / len(data) * math.log2(count / len(data)) for count in Counter(data).values())


@functools.cache
def rules() -> tuple[Rule, ...]:
    """All of them.

    Raises:
        re.error, KeyError: the files are not what they should be.
    """
    theirs = tomllib.loads((FOLDER / "gitleaks.toml").read_text(encoding="utf-8"))
    ours = tomllib.loads((FOLDER / "netboot.toml").read_text(encoding="utf-8"))
    merged = {rule["id"]: rule for rule in theirs["rules"] if rule["id"] not in ours["extend"]["disabledRules"]}
    for rule in ours["rules"]:
        merged[rule["id"]] = merged.get(rule["id"], {}) | rule
    patterns = [_MEANT.get(pattern, pattern) for pattern in theirs["allowlist"]["regexes"]]
    general = _allow({"regexes": patterns, "stopwords": theirs["allowlist"].get("stopwords", ())})
    return tuple(_rule(rule, general) for rule in merged.values())


@functools.cache
def _by_keyword() -> Mapping[bytes, tuple[Rule, ...]]:
    table: dict[bytes, tuple[Rule, ...]] = {}
    for rule in rules():
        for keyword in rule.keywords if rule.pattern else ():
            table[keyword] = (*table.get(keyword, ()), rule)
    return table


@functools.cache
def _by_path() -> tuple[Rule, ...]:
    return tuple(rule for rule in rules() if rule.pattern is None)


def _rule(rule: Mapping[str, Any], general: Allow) -> Rule:
    return Rule(
        id=rule["id"],
        keywords=tuple(word.lower().encode() for word in rule.get("keywords", ("",))),
        path=compiled(rule["path"]) if "path" in rule else None,
        pattern=compiled(rule["regex"].replace(_LEAD, "", 1)) if "regex" in rule else None,
        group=rule.get("secretGroup", 0),
        entropy=rule.get("entropy", 0.0),
        allows=(general, *map(_allow, rule.get("allowlists", ()))),
    )


def _allow(allow: Mapping[str, Any]) -> Allow:
    words = b"|".join(re.escape(word.lower().encode()) for word in allow.get("stopwords", ()))
    return Allow(
        target=allow.get("regexTarget", "secret"),
        patterns=tuple(map(compiled, allow.get("regexes", ()))),
        words=re.compile(words) if words else None,
        paths=tuple(map(compiled, allow.get("paths", ()))),
        all=allow.get("condition", "OR").upper() in ("AND", "&&"),
    )
