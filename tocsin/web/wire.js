/** What goes to servers and comes from them: JSON in which whole numbers of any size are exact. */

/** What was wrong, and what to do; `code` is for programs, as docs/protocol.md lists them. */
export class TocsinError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

export const encode = (message) => JSON.stringify(message, (_, value) =>
  (typeof value === "bigint" ? JSON.rawJSON(String(value)) : value));

/** Only texts with very long numbers are read the slow way, which keeps their digits. */
export const decode = (text) => (/\d{16}/.test(text) ? JSON.parse(text, exactly) : JSON.parse(text));

const exactly = (_, value, {source} = {}) =>
  (Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? "") ? BigInt(source) : value);

/** A call to the coordinator. */
export async function call(coordinator, path, token, options = {}) {
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  if (options.body) headers["Content-Type"] = "application/json";
  const answer = await fetch(coordinator.replace(/\/$/, "") + path, {...options, headers});
  const body = await answer.json().catch(() => null);
  if (answer.ok && body) return body;
  const {code = "unavailable", message = `${coordinator} did not answer as a coordinator does`} = body?.error ?? {};
  throw new TocsinError(code, message);
}

/** A channel's name, as names are compared. */
export const named = ({channel}) => channel.toLowerCase();

/** What a subscription is to, as the data cluster spells it: it may get another number, but these stay. */
export const words = (held) => JSON.stringify([named(held), held.parameters], (_, value) => {
  if (typeof value === "bigint") return `${value}n`;
  const plain = value && typeof value === "object" && !Array.isArray(value);
  return plain ? Object.fromEntries(Object.entries(value).sort()) : value;
});
