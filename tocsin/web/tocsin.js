/**
 * The subscriber's client for browsers and Node 22 or newer: an ES module without dependencies.
 *
 *     import {connect} from "./tocsin.js";
 *     const me = await connect("http://localhost:8700", {token});
 *     const floods = await me.subscribe("EmergenciesOfType", {event: "flood"});
 *     for await (const note of floods) console.log(note.rows);
 *
 * Lost connections, moves between brokers and repetitions are dealt with in here, by the rules of docs/protocol.md.
 * Whole numbers that a JavaScript number cannot hold exactly are given as BigInt.
 */

import {Subscriber, unregister} from "./subscriber.js";
import {Gap, Note, Subscription} from "./subscription.js";
import {TocsinError, call} from "./wire.js";

export {Gap, Note, Subscriber, Subscription, TocsinError, unregister};

/** How patient and how large a connection is: seconds, notes and factors. */
export const RULES = {
  login: 10, firstWait: 0.25, longestWait: 30, floodWait: 30, steady: 10, ack: 0.5, ackNotes: 100, backlog: 1000,
  renew: 1, retry: 1,
};

/**
 * Connects a subscriber; resolves when a broker serves it, rejects when there is no coordinator or the token is wrong.
 * With ws:// URLs it is one of a content-based overlay, whose edges these are: see tocsin-content.js.
 * @param {string|string[]} coordinator the coordinator's URL, or those of edges
 * @param {{token: string, location?: [number, number], rules?: Partial<typeof RULES>}} options
 * @returns {Promise<Subscriber|import("./tocsin-content.js").OverlayConnection>}
 */
export async function connect(coordinator, {token, location, rules, name} = {}) {
  const edges = [coordinator].flat();
  if (edges.every((url) => /^wss?:/.test(url))) {
    const {OverlayConnection} = await import("./tocsin-content.js");
    return new OverlayConnection(edges, {name, token, rules});
  }
  const me = new Subscriber(coordinator, token, location, {...RULES, ...rules});
  await me.start();
  return me;
}

/**
 * Registers a subscriber, and gives its token. `token` is an operator's, where not everybody may register.
 * @returns {Promise<string>}
 */
export async function register(coordinator, name, token) {
  return (await call(coordinator, "/users", token, {method: "POST", body: JSON.stringify({name})})).token;
}
