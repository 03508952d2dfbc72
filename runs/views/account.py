"""Sign in, sign out, change the password, choose how things are shown."""

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
from django_htmx.http import trigger_client_event

from runs import rights
from runs.actions.acting import Refused
from runs.actions.preferences import choose
from runs.forms import account as forms
from runs.queries.preferences import LANGUAGE, THEME, Preferences, chosen, from_browser
from runs.queries.viewer import Viewer
from runs.views.access import absent, name_request, page, refused, show

YEAR = 365 * 24 * 3600
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


@require_http_methods(["GET", "HEAD", "POST"])
@page("see", "GET", "HEAD", "POST")
def preferences(request: Any) -> HttpResponse:
    """Language, theme, zone, keys, notices: kept with the person, so that every browser of theirs knows."""
    browser = from_browser(request.COOKIES, request.headers.get("Accept-Language", ""))
    kept = {"keys": True, "notify": False} | chosen(request.user)
    form = forms.Choices(request.POST if request.method == "POST" else None, browser=browser, initial=kept)
    if request.method == "POST" and form.is_valid():
        choose(request.user, **form.cleaned_data)
        with Preferences(form.cleaned_data["language"] or browser.language).spoken():
            messages.success(request, _("Kept. It holds in every browser in which you sign in."))
        return _remembered(redirect("preferences"), form.cleaned_data)
    return show(request, "account/preferences.html", {"form": form}, status=422 if form.errors else 200)


@require_POST
def look(request: Any) -> HttpResponse:
    """The switches for language and theme; they work before signing in too, by cookies."""
    name_request(request)
    form = forms.Look(request.POST)
    if not form.is_valid():
        return refused(request, Refused("There is no such language or theme.", 422))
    said = {name: form.cleaned_data[name] for name in ("language", "theme") if name in request.POST}
    if request.user.is_authenticated and rights.may(request.user, "see"):
        choose(request.user, **said)
    answer = HttpResponse(status=204) if request.htmx else redirect(_safe(request, request.POST.get("next", "")))
    if request.htmx:
        trigger_client_event(answer, "look", said)
    return _remembered(answer, said)


def _remembered(answer: HttpResponse, said: dict[str, Any]) -> HttpResponse:
    """Keep language and theme in cookies as well: the page to sign in comes before anybody is known."""
    for name, cookie in (("language", LANGUAGE), ("theme", THEME)):
        if said.get(name):
            answer.set_cookie(cookie, said[name], max_age=YEAR, secure=settings.SESSION_COOKIE_SECURE, samesite="Lax")
        elif name in said:
            answer.delete_cookie(cookie, samesite="Lax")
    return answer
