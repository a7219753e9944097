/** Requests that want an answer: sent again on every new connection until they have one. */

import {TocsinError} from "./wire.js";

const PASSING = new Set(["busy", "unavailable", "storage", "internal"]);

/** The requests of a subscriber, by the id that each keeps however often it is sent. */
export class Requests {
  #connector; #retry; #asks = new Map(); #ids = 0; #over = null;

  constructor(connector, retry) {
    [this.#connector, this.#retry] = [connector, retry];
  }

  /** Resolves with the answer, rejects with the error that is one. */
  ask(message) {
    return new Promise((resolve, reject) => this.put({message, resolve, reject}));
  }

  put({message, resolve, reject}) {
    if (this.#over) return reject(this.#over);
    const id = ++this.#ids;
    this.#asks.set(id, {message: {...message, id}, resolve, reject, link: null});
    this.#pass(id);
  }

  /** Takes a request back, to be put again or never. */
  withdraw({message}) {
    this.#asks.delete(message.id);
  }

  has(id) {
    return this.#asks.has(id);
  }

  /** The requests of a type; `link` is the connection that has last heard one, if any has. */
  of(type) {
    return [...this.#asks.values()].filter(({message}) => message.type === type);
  }

  /** Sends what this connection has not heard yet. */
  passAll() {
    for (const [id, {link}] of this.#asks) if (link !== this.#connector.serving) this.#pass(id);
  }

  /** An answer has come, or an error that may pass; whether it was to one of these. */
  answered(answer) {
    const ask = this.#asks.get(answer.id);
    if (!ask) return false;
    if (answer.type === "error" && (PASSING.has(answer.code) || answer.retry_after != null)) {
      setTimeout(() => this.#pass(answer.id), (answer.retry_after ?? this.#retry) * 1000);
      return true;
    }
    this.#asks.delete(answer.id);
    if (answer.type === "error") ask.reject(new TocsinError(answer.code, answer.message));
    else ask.resolve(answer);
    return true;
  }

  stop(error) {
    this.#over = error;
    for (const {reject} of this.#asks.values()) reject(error);
  }

  /** Sends a request, unless the broker to move to is about to say what it holds. */
  #pass(id) {
    const ask = this.#asks.get(id), {serving, entering} = this.#connector;
    if (!ask || serving === null || (entering && ask.message.type !== "publish")) return;
    ask.link = serving;
    this.#connector.send(ask.message);
  }
}
