"""Sign in, sign out, change the password."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout, update_session_auth_hash
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from runs.actions.acting import Refused
from runs.forms import account as forms
from runs.queries.viewer import Viewer
from runs.views.access import absent, name_request, page, refused, show

DEMO_PEOPLE = ("operator", "reviewer", "auditor", "admin")


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Ask for name and password, then go where the person wanted to go."""
    name_request(request)
    target = _safe(request, request.POST.get("next") or request.GET.get("next") or "")
    if request.user.is_authenticated and request.method != "POST":
        return redirect(target)
    form = forms.SignIn(request, data=request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        login(request, form.get_user())
        return redirect(target)
    context = {"form": form, "next": target, "demo_people": DEMO_PEOPLE if _demo() else ()}
    return show(request, "account/sign_in.html", context, status=422 if form.errors else 200)


def _demo() -> bool:
    given = bool(settings.AGENTOPS_DEMO_PASSWORD)
    return given or (settings.AGENTOPS_VAR / "demo-passwords.json").exists()


def _safe(request: HttpRequest, target: str) -> str:
    mine = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if target and mine else settings.LOGIN_REDIRECT_URL


@require_http_methods(["GET", "HEAD"])
def admin_door(request: Any) -> HttpResponse:
    """Where Django's admin sends people without the right: to our door, or, when they are in, to a plain no."""
    name_request(request)
    if not request.user.is_authenticated:
        return redirect_to_login(_safe(request, request.GET.get("next") or ""))
    request.viewer = Viewer.of(request.user)
    if not request.viewer.may("see"):
        return refused(request, absent())
    return refused(request, Refused("Django's admin is for staff; somebody with a shell can make you one.", 403))


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session here; open sockets close within five seconds."""
    logout(request)
    return redirect("sign-in")


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@page("see", "GET", "HEAD", "POST")
def password(request: Any) -> HttpResponse:
    """Change one's own password; this session stays, all others end."""
    form = forms.Password(request.user, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        form.save()
        update_session_auth_hash(request, form.user)
        messages.success(request, _("Your password is changed. Other sessions of yours have ended."))
        return redirect("inbox")
    return show(request, "account/password.html", {"form": form}, status=422 if form.errors else 200)
