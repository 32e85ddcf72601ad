/**
 * Exchanges the token for a ticket, which opens one connection and is worth nothing afterwards: so the
 * token itself goes into no WebSocket handshake. Knows no DOM and no storage.
 */

const TIMEOUT_MS = 8000;

/** The server does not know this token (any more): another one is needed. */
export class TokenRefused extends Error {}

/**
 * @param {string} token
 * @param {typeof fetch} [request]
 * @returns {Promise<string>} good once, for about half a minute
 * @throws {TokenRefused} or an Error that says why there is none now
 */
export async function fetchTicket(token, request = fetch) {
  const response = await request("/v1/ticket", {
    method: "POST",
    cache: "no-store",
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (response.status === 401) throw new TokenRefused("the server refused the token");
  if (!response.ok) throw new Error(`the server gave no ticket (HTTP ${response.status})`);
  const { ticket } = await response.json();
  return String(ticket);
}
