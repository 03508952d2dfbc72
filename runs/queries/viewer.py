"""Who is looking: a person with the groups read once for this request, frame or batch."""

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils.translation import gettext_lazy as _

from runs import rights

ROLES = {"operator": _("operator"), "auditor": _("auditor"), "admin": _("admin")}


@dataclass(frozen=True)
class Viewer:
    """A signed-in person and what they may do; the actions check again for themselves."""

    person: AbstractBaseUser | AnonymousUser
    groups: frozenset[str]

    @classmethod
    def of(cls, person: AbstractBaseUser | AnonymousUser) -> "Viewer":
        """Read the person's groups: one query."""
        return cls(person, rights.groups_of(person))

    def may(self, act: str) -> bool:
        """Whether the person may do `act`, one of `rights.ACTS`."""
        return not rights.ACTS[act].isdisjoint(self.groups)

    @property
    def name(self) -> str:
        """The name that others see."""
        return self.person.get_username()

    @property
    def initials(self) -> str:
        """Two letters for the corner of the page."""
        return self.name[:2].upper()

    @property
    def roles(self) -> str:
        """The groups in words."""
        return ", ".join(str(ROLES[name]) for name in sorted(self.groups))

    @property
    def starts(self) -> bool:
        """May start runs."""
        return self.may("start")

    @property
    def decides(self) -> bool:
        """May decide, answer and attest."""
        return self.may("decide")

    @property
    def steers(self) -> bool:
        """May pause, resume, cancel, extend and give up."""
        return self.may("steer")

    @property
    def notes(self) -> bool:
        """May write notes."""
        return self.may("note")

    @property
    def signs_off(self) -> bool:
        """May sign off an integrity stop."""
        return self.may("sign_off")
