"""Signing in and out: with a password, or once with a printed link."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login, logout, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.operations import use_sign_in_link
from apps.web.access import signed_in


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    """Sign in with a user name and a password."""

    template_name = "registration/sign_in.html"
    redirect_authenticated_user = True


@login_not_required
@never_cache
@require_http_methods(["GET", "POST"])
def sign_in_by_link(request: HttpRequest, secret: str) -> HttpResponse:
    """Sign in once with a printed link.

    GET only shows a button, so that a preview or a prefetch does not use the link up.
    """
    if request.method == "GET":
        return render(request, "registration/sign_in_link.html", {"secret": secret})
    user = use_sign_in_link(secret=secret, now=timezone.now())
    if user is None:
        return render(
            request, "registration/sign_in_link.html", {"is_used": True}, status=410
        )
    login(request, user)
    return redirect("home")


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    logout(request)
    return redirect("sign-in")


@require_http_methods(["GET"])
def account(request: HttpRequest) -> HttpResponse:
    """The user's own page: name and password."""
    form = SetPasswordForm(signed_in(request))
    return render(request, "web/account.html", {"form": form})


@require_POST
def set_password(request: HttpRequest) -> HttpResponse:
    """Set a password, so that the next sign-in needs no link."""
    form = SetPasswordForm(signed_in(request), request.POST)
    if not form.is_valid():
        return render(request, "web/account.html", {"form": form}, status=422)
    user = form.save()
    update_session_auth_hash(request, user)
    messages.success(request, "Your password is set.")
    return redirect("account")
