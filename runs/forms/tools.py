"""What an admin sets about one tool: the verdict where no rule matches, the risk, and the rules that are its limits."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.toolspec import ToolSpec
from runs.forms.base import Styled, Text
from runs.queries.policies import COMPARE, VERDICT
from runs.queries.tools import is_own
from runs.queries.words import RISK

CLAUSES, MOST_RULES = 2, 30
VERDICTS = [(name, sign.word) for name, sign in VERDICT.items()]
OPERATORS = list(COMPARE.items())
REASON = gettext_lazy("Why; it goes into the record")


def parsed(kind: str, op: str, typed: str) -> Any:
    """What a condition compares with, of the argument's own type: the gate compares no text with numbers.

    Raises `ValueError` with what is wrong.
    """
    if op in ("decimal_le", "decimal_gt"):
        try:
            if not Decimal(typed.strip()).is_finite():
                raise InvalidOperation
        except InvalidOperation as error:
            raise ValueError(_("This needs a number such as 500.00.")) from error
        return typed.strip()
    if op == "in":
        return [parsed(kind, "eq", item.strip()) for item in typed.split(",") if item.strip()]
    if kind == "integer":
        if not typed.strip().removeprefix("-").isdecimal():
            raise ValueError(_("This argument is a whole number."))
        return int(typed)
    if kind == "boolean":
        if typed.strip() not in ("true", "false"):
            raise ValueError(_("This argument is true or false."))
        return typed.strip() == "true"
    return typed


def typed_of(value: Any) -> str:
    """A stored value as it would be typed."""
    if isinstance(value, list):
        return ", ".join(typed_of(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def editable(rule: Mapping[str, Any], spec: ToolSpec) -> bool:
    """Whether the form can show a rule and give it back unchanged."""
    kinds = {name: about.get("type", "") for name, about in spec.schema.get("properties", {}).items()}
    try:
        return len(rule.get("when", [])) <= CLAUSES and all(
            c["arg"] in kinds and parsed(kinds[c["arg"]], c["op"], typed_of(c["value"])) == c["value"]
            for c in rule.get("when", [])
        )
    except ValueError:
        return False


class RuleForm(Styled):
    """One rule about one tool: a verdict, up to `CLAUSES` conditions, why, and who may not decide."""

    id = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)
    effect = forms.ChoiceField(label=gettext_lazy("Verdict"), choices=VERDICTS)
    why = forms.CharField(label=gettext_lazy("Why"), required=False, max_length=300)
    excludes = forms.BooleanField(label=gettext_lazy("Not by the person who started the run"), required=False)
    minutes = forms.IntegerField(label=gettext_lazy("Expires after minutes"), required=False, min_value=1)
    remove = forms.BooleanField(label=gettext_lazy("Remove this rule"), required=False)

    def __init__(self, spec: ToolSpec, data: Any = None, **options: Any) -> None:
        """The arguments that a condition may name are those of the tool."""
        super().__init__(data, **options)
        self.types = {name: about.get("type", "") for name, about in spec.schema.get("properties", {}).items()}
        for n, blank in enumerate((gettext_lazy("always"), gettext_lazy("nothing more"))):
            names = [("", blank), *((name, name) for name in self.types)]
            self.fields[f"arg{n}"] = forms.ChoiceField(label=gettext_lazy("Argument"), choices=names, required=False)
            self.fields[f"op{n}"] = forms.ChoiceField(label=gettext_lazy("is"), choices=OPERATORS, required=False)
            self.fields[f"value{n}"] = forms.CharField(label=gettext_lazy("Value"), required=False, max_length=500)
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput | forms.HiddenInput):
                field.widget.attrs["class"] = "input"

    @property
    def clauses(self) -> list[tuple[forms.BoundField, forms.BoundField, forms.BoundField]]:
        """(argument, operator, value) of each condition."""
        return [(self[f"arg{n}"], self[f"op{n}"], self[f"value{n}"]) for n in range(CLAUSES)]

    def clean(self) -> dict[str, Any]:
        """Conditions that could be enforced; each wrong value is told at its own field."""
        data = super().clean() or {}
        found = []
        for n in range(CLAUSES):
            if arg := data.get(f"arg{n}"):
                try:
                    value = parsed(self.types.get(arg, ""), data.get(f"op{n}", ""), data.get(f"value{n}", ""))
                    found.append({"arg": arg, "op": data[f"op{n}"], "value": value})
                except ValueError as error:
                    self.add_error(f"value{n}", str(error))
        data["when"] = found
        return data

    def rule(self, tool: str, name: str) -> dict[str, Any]:
        """The rule as a policy stores it."""
        data = self.cleaned_data
        made = {"id": data["id"] or name, "effect": data["effect"], "tools": [tool], "when": data["when"]}
        made |= {"why": data["why"]} if data["why"] else {}
        made |= {"exclude_starter": True} if data["excludes"] else {}
        return made | ({"expires": data["minutes"] * 60} if data["minutes"] else {})

    @property
    def typed(self) -> bool:
        """Whether the row for a new rule was filled in."""
        return self.is_bound and any(self[name].value() for name in ("id", "why", "arg0"))

    @property
    def empty(self) -> bool:
        """The row for a new rule, left as it was."""
        return not self.cleaned_data["id"] and not self.cleaned_data["why"] and not self.cleaned_data["when"]


class ToolForm(Styled):
    """A draft. `based_on` is the version that was shown, `seen` the digest of the draft looked at last."""

    based_on = forms.IntegerField(widget=forms.HiddenInput)
    seen = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)
    default = forms.ChoiceField(
        label=gettext_lazy("Where no rule matches"), choices=VERDICTS, widget=forms.RadioSelect,
        error_messages={"required": gettext_lazy("Choose what happens where no rule matches.")},
    )  # fmt: skip
    risk = forms.ChoiceField(label=gettext_lazy("Risk"), required=False)
    reason = Text(label=REASON, rows=2, required=False)

    def __init__(self, spec: ToolSpec, content: Mapping[str, Any], data: Any = None, **initial: Any) -> None:
        """`content` is what the fields begin with."""
        own = [rule for rule in content.get("rules", []) if is_own(rule, spec.name)]
        initial |= {"default": content.get("defaults", {}).get(spec.name, "ask")}
        initial |= {"risk": content.get("risk", {}).get(spec.name, "")}
        super().__init__(data, initial=initial)
        self.spec = spec
        by_itself = _("As the tool says: {risk}").format(risk=RISK[spec.risk.value])
        self.fields["risk"].choices = [("", by_itself), *RISK.items()]  # type: ignore[attr-defined]
        plain = [rule for rule in own if editable(rule, spec)]
        self.fixed = [rule for rule in own if rule not in plain]
        posted = [n for n in range(MOST_RULES) if data is not None and f"r{n}-effect" in data]
        begin = [_begin(rule) for rule in plain] + [{"effect": "ask"}] * (max(posted, default=0) + 1)
        count = posted[-1] + 1 if posted else len(plain) + 1
        self.rules = [RuleForm(spec, data, prefix=f"r{n}", initial=begin[n]) for n in range(count)]

    def mark(self, digest: str) -> None:
        """Carry the digest of the draft that is shown now, whatever was posted."""
        self.initial["seen"] = digest
        if self.is_bound:
            self.data: Any = {**self.data.dict(), "seen": digest} if hasattr(self.data, "dict") else self.data

    def is_valid(self) -> bool:
        """The form and each of its rules."""
        return all([super().is_valid(), *(rule.is_valid() for rule in self.rules)])

    @property
    def spare(self) -> RuleForm:
        """The row for a new rule."""
        return self.rules[-1]

    @property
    def wrong(self) -> bool:
        """Whether anything that was typed is wrong."""
        return bool(self.errors) or any(rule.errors for rule in self.rules)

    def content(self, base: Mapping[str, Any]) -> dict[str, Any]:
        """`base` with what was typed about this tool; all else stays."""
        tool, data = self.spec.name, self.cleaned_data
        risk = {name: level for name, level in base.get("risk", {}).items() if name != tool}
        rules = base.get("rules", [])
        kept = [rule for rule in rules if not is_own(rule, tool) or not editable(rule, self.spec)]
        taken = {str(rule["id"]) for rule in rules}
        made = []
        for form in self.rules:
            if not form.empty and not form.cleaned_data["remove"]:
                made.append(form.rule(tool, _free(tool, taken)))
                taken.add(made[-1]["id"])
        known = {str(rule["id"]): n for n, rule in enumerate(rules)}
        rules = sorted([*kept, *made], key=lambda rule: known.get(rule["id"], len(known)))
        return {
            "defaults": {**base.get("defaults", {}), tool: data["default"]},
            "risk": risk | ({tool: data["risk"]} if data["risk"] else {}),
            "off": list(base.get("off", [])), "rules": rules,
        }  # fmt: skip


def _begin(rule: Mapping[str, Any]) -> dict[str, Any]:
    begin = {
        "id": rule["id"], "effect": rule["effect"], "why": rule.get("why", ""),
        "excludes": rule.get("exclude_starter", False), "minutes": rule.get("expires", 0) // 60 or None,
    }  # fmt: skip
    for n, condition in enumerate(rule.get("when", [])):
        begin |= {f"arg{n}": condition["arg"], f"op{n}": condition["op"]}
        begin[f"value{n}"] = typed_of(condition["value"])
    return begin


def _free(tool: str, taken: set[str]) -> str:
    """An id that no rule has: the record keeps naming the old ones."""
    n = 1
    while f"{tool[:50]}-{n}" in taken:
        n += 1
    return f"{tool[:50]}-{n}"


class Switch(Styled):
    """Switch off, or on again, with a reason. For every tool at once a word has to be typed."""

    off = forms.ChoiceField(choices=[("1", ""), ("0", "")], widget=forms.HiddenInput)
    why = Text(
        label=REASON, rows=2, error_messages={"required": gettext_lazy("Say why: the reason goes into the record.")}
    )

    def __init__(self, data: Any = None, *, off: bool, word: str = "") -> None:
        """`off` is what it is to become; `word` is what has to be typed, empty for none."""
        super().__init__(data, initial={"off": "1" if off else "0"}, auto_id="switch_%s")
        self.word = word
        if word:
            told = _("Type {word} to confirm").format(word=word)
            self.fields["typed"] = forms.CharField(
                label=told, widget=forms.TextInput(attrs={"class": "input", "autocomplete": "off"}),
                error_messages={"required": told},
            )  # fmt: skip

    def clean_typed(self) -> str:
        """The word, letter by letter."""
        typed = str(self.cleaned_data["typed"]).strip()
        if typed != self.word:
            raise forms.ValidationError(_("That is not the word {word}.").format(word=self.word))
        return typed


class BringBack(Styled):
    """Publish an older version again."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    based_on = forms.IntegerField(widget=forms.HiddenInput)
    why = Text(
        label=REASON, rows=2, error_messages={"required": gettext_lazy("Say why: the reason goes into the record.")}
    )
