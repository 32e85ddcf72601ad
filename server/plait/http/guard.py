"""Routes that ask for a token: who may read them, and the ticket a token is exchanged for.

`GET /metrics` needs the capability metrics, `GET /v1/status` admin, `POST /v1/ticket` a good token
only. No CORS headers: a page of another origin may not read an answer, its app's server may.
Does NOT know: what the routes answer, which tokens there are.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from plait.access.access import Access
from plait.access.apps import Apps
from plait.access.keyring import Grant
from plait.access.tickets import MAX_OPEN_PER_APP, TICKET_SECONDS, TooManyTickets
from plait.http.security import ORIGIN_REFUSED, Perimeter, bearer

NO_STORE = {"cache-control": "no-store"}


class Guard:
    """Of one server; asked before a handler does anything."""

    def __init__(self, access: Access, apps: Apps, perimeter: Perimeter) -> None:
        self._access = access
        self._apps = apps
        self._perimeter = perimeter

    def refusal(self, request: Request, capability: str) -> Response | None:
        """The answer to who may not read this: 401, or 403 naming the capability; else None."""
        grant = self._admit(request)
        if isinstance(grant, Response):
            return grant
        if not self._apps.may(grant.app, capability):
            return PlainTextResponse(
                f"The app of this token lacks the capability {capability}.\n", status_code=403
            )
        return None

    async def give_ticket(self, request: Request) -> Response:
        """One connection with the token's rights, for a page that must not hold the token. The
        body of the request is not read."""
        grant = self._admit(request)
        if isinstance(grant, Response):
            return grant
        try:
            ticket = self._access.issue_ticket(grant)
        except TooManyTickets:
            return PlainTextResponse(
                f"{MAX_OPEN_PER_APP} tickets of this app are open: use them, or wait"
                f" {TICKET_SECONDS} s.\n",
                status_code=429,
                headers={"retry-after": str(TICKET_SECONDS)},
            )
        return JSONResponse({"ticket": ticket, "expires_in": TICKET_SECONDS}, headers=NO_STORE)

    def _admit(self, request: Request) -> Grant | Response:
        """By a token in the header: tickets open connections only."""
        grant = self._access.find(bearer(request.headers.get("authorization")))
        if grant is None:
            return PlainTextResponse(
                "Send Authorization: Bearer <token>.\n",
                status_code=401,
                headers={"www-authenticate": "Bearer"},
            )
        if not self._perimeter.origin_counts(request.headers.get("origin"), grant.app):
            return PlainTextResponse(ORIGIN_REFUSED, status_code=403)
        return grant
