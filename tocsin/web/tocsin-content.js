/**
 * Content-based subscriptions for browsers and Node 22 or newer, at the edges of an overlay, and publications to a head.
 *
 *     import {connect} from "./tocsin.js";
 *     const me = await connect(["ws://localhost:8711", "ws://localhost:8712"]);
 *     const quotes = await me.subscribe("symbol = 'YHOO' and high > 40");
 *     for await (const note of quotes) console.log(note.publisher, note.sequence, note.content);
 *
 *     const ticker = await connect("ws://localhost:8710", {name: "ticker"});
 *     await ticker.publish({symbol: "YHOO", high: 41.5, halted: false});
 *
 * Lost connections, moves between edges and repetitions are dealt with in here, by docs/overlay-protocol.md.
 */

import {ContentPublisher, EXPIRED, TOO_LARGE, dial, expired} from "./publisher.js";
import {TocsinError} from "./tocsin.js";

/** How patient and how large an application is: seconds, and publications that wait for it. */
export const CONTENT_RULES = {firstWait: 0.2, longestWait: 5, open: 10, backlog: 1000, retry: 1};

/** How long whoever may leave an edge waits to hear from the other one: they are not heard on the same connection. */
const SERVED_SECONDS = 5;

/** A program at some edges, of which any will do, or at a head. */
export class OverlayConnection {
  #edges; #name; #token; #rules; #subscriptions = []; #publisher = null;

  /**
   * @param {string[]} edges their URLs, or that of a head
   * @param {{name?: string, token?: string, rules?: Partial<typeof CONTENT_RULES>}} options `name` is one that no other
   *   program has at the same time, and `token` the overlay's clients'
   */
  constructor(edges, {name, token, rules} = {}) {
    [this.#edges, this.#name, this.#token, this.#rules] = [edges, name ?? madeUp(token), token, {...CONTENT_RULES, ...rules}];
  }

  /**
   * Subscribes to what a filter matches; resolves when that has begun at a head, rejects with what is wrong.
   * @param {string} where such as `symbol = 'YHOO' and high > 40`
   * @param {{cursors?: Record<string, [number, string?]>, onGap?: (gap: {head: string, first: number, last: number|null})
   *   => void}} options `cursors` are those of an earlier subscription; `onGap` is told what is not kept any more, in its
   *   place among the publications
   * @returns {Promise<ContentSubscription>}
   */
  async subscribe(where, {cursors = {}, onGap} = {}) {
    const name = `${this.#name}+${this.#subscriptions.length + 1}`;
    const subscription = new ContentSubscription(name, where, this.#edges, this.#token, this.#rules, cursors, onGap);
    this.#subscriptions.push(subscription);
    await subscription.start();
    return subscription;
  }

  /**
   * Publishes to the head that this is connected to; resolves when it is stored, rejects with what is wrong. Until then
   * it is sent again whenever the head comes back, as long as the page is there.
   * @param {Record<string, string|number|boolean|null>} content attributes and their values; null is left out
   * @returns {Promise<void>}
   */
  async publish(content) {
    const [head] = this.#edges;
    this.#publisher ??= new ContentPublisher(this.#name, head, clientUrl(head), protocols(this.#token), this.#rules);
    await this.#publisher.publish(content);
  }

  /** Leaves all edges, and the head. */
  close() {
    for (const subscription of this.#subscriptions) subscription.close();
    this.#publisher?.close();
  }
}

/**
 * An async iterator of publications, each once, in the order of each head. `cursors` say how far the application is, for
 * another day: a publication counts as had when the next one is asked for, or with `done()`.
 */
export class ContentSubscription {
  #name; #edges; #token; #rules; #onGap; #cursors; #home = null; #next = null; #failures = 0; #over = null;
  #retryTimer = null; #leaveTimer = null; #waiting = []; #reader = null; #had = null; #full = false; #begun = false;
  #started; #start;

  constructor(name, where, edges, token, rules, cursors, onGap) {
    [this.#name, this.#edges, this.#token, this.#rules, this.#onGap] = [name, edges, token, rules, onGap];
    this.#cursors = {...cursors};
    Object.assign(this, {where, cursors: {...cursors}});
    this.#started = new Promise((resolve, reject) => { this.#start = {resolve, reject}; });
  }

  /** The URL of the edge where it is, or wants to be. */
  get edge() {
    return this.#home?.edge ?? null;
  }

  start() {
    this.#goHome();
    return this.#started;
  }

  [Symbol.asyncIterator]() {
    // Not the iterator itself: a loop that is left would call its `return`, and another loop is to go on.
    return {next: () => this.next()};
  }

  /** @returns {Promise<IteratorResult<{head: string, offset: number, publisher: string, sequence: number,
   *   content: Record<string, string|number|boolean>}>>} */
  async next() {
    for (;;) {
      this.done();
      while (!this.#waiting.length) {
        if (this.#over?.error) throw this.#over.error;
        if (this.#over) return {done: true, value: undefined};
        this.#refill();
        await new Promise((resolve) => { this.#reader = resolve; });
      }
      this.#had = this.#waiting.shift();
      const {message} = this.#had;
      if (message?.type === "Note") return {done: false, value: message};
      if (message) this.#onGap?.({head: message.head, first: message.first, last: message.last});
    }
  }

  /** Counts the last publication as had, though the next one is not asked for yet. */
  done() {
    if (this.#had) this.cursors[this.#had.head] = this.#had.cursor;
    this.#had = null;
  }

  /** Leaves; a loop that waits for the next publication ends. */
  close() {
    this.#send(this.#home, {type: "Unsubscribe"});
    this.#stop(null);
  }

  #open(edge, session = "", migrating = 0) {
    const socket = dial(clientUrl(edge), protocols(this.#token), this.#rules.open);
    const link = {edge, session, migrating, since: new Map(), socket};
    link.socket.onopen = () => this.#subscribe(link);
    link.socket.onmessage = ({data}) => this.#received(link, data);
    link.socket.onclose = ({code, reason}) => this.#closed(link, code, reason);
    return link;
  }

  #goHome() {
    this.#home = this.#open(this.#edges[this.#failures % this.#edges.length]);
  }

  #subscribe(link) {
    const {session, migrating} = link;
    this.#send(link, {
      type: "Subscribe", subscriber: this.#name, where: this.where, cursors: this.#cursors, session, migrating,
    });
  }

  #send(link, message) {
    if (link?.socket.readyState === WebSocket.OPEN) link.socket.send(JSON.stringify(message));
  }

  #received(link, text) {
    let message;
    try {
      message = JSON.parse(text);
    } catch {
      return this.#lost(link, "it sent what is no message");
    }
    this.#said(link, message);
  }

  #said(link, message) {
    switch (message.type) {
      case "Began": return this.#began(link, message);
      case "Note": return this.#goesOn(link, message.head, message.offset) && this.#put(message.head, message);
      case "Passed": return this.#goesOn(link, message.head, message.offset) && this.#put(message.head, null);
      case "Gap": return this.#gap(link, message);
      case "Move": return this.#move(link, message);
      case "Settle": return this.#settle(message);
      case "Refused":
        if (link === this.#next) return this.#lost(link, message.message);
        return this.#stop(new TocsinError("invalid", message.message));
    }
  }

  #began(link, {head, offset, incarnation, known, shared}) {
    this.#failures = 0;
    link.since.set(head, [offset, incarnation]);
    const cursor = this.#cursors[head] ?? null;
    if (!cursor) {
      this.#cursors[head] = [offset, incarnation];
      this.#put(head, null);
    } else if ((cursor[1] ?? "") === known && known !== incarnation) {
      this.#beginAnew(head, cursor[0], incarnation, shared);
    }
    if (!this.#follows(link, head)) this.#subscribe(link);
    if (link === this.#next && link.mayLeave) {
      clearTimeout(this.#leaveTimer);
      this.#leave(0);
    }
    this.#begun = true;
    this.#start.resolve();
  }

  /** The head's log has another incarnation than the cursor: what is not shared is lost. */
  #beginAnew(head, offset, incarnation, shared) {
    this.#cursors[head] = [Math.max(0, Math.min(offset, shared)), incarnation];
    this.#put(head, offset > shared ? {type: "Gap", head, first: offset + 1, last: null} : null);
  }

  #gap(link, {head, first, last}) {
    const before = this.#cursors[head]?.[0] ?? 0;
    if (!this.#goesOn(link, head, last)) return;
    this.#put(head, {type: "Gap", head, first: Math.max(first, before + 1), last});
  }

  /** Whether who gives everything from where this edge began leaves out nothing after the cursor. */
  #follows(link, head) {
    const since = link.since.get(head), cursor = this.#cursors[head];
    return Boolean(since && cursor) && since[1] === (cursor[1] ?? "") && since[0] <= cursor[0];
  }

  /** Whether this is beyond the cursor, which then is there. */
  #goesOn(link, head, offset) {
    if (!this.#follows(link, head) || offset <= this.#cursors[head][0]) return false;
    this.#cursors[head] = [offset, this.#cursors[head][1]];
    return true;
  }

  #put(head, message) {
    this.#waiting.push({head, message, cursor: this.#cursors[head]});
    this.#wake();
    // A page cannot stop reading. So it leaves, and comes back with its cursors when there is room.
    if (this.#waiting.length >= this.#rules.backlog && !this.#full) {
      this.#full = true;
      this.#releaseAll();
    }
  }

  #refill() {
    if (!this.#full) return;
    this.#full = false;
    this.#goHome();
  }

  #move(link, {edge, session, migrating}) {
    if (link === this.#home && !this.#next) this.#next = this.#open(edge, session, migrating);
  }

  #settle({session, seconds}) {
    if (this.#next?.session !== session) return;
    this.#leaveTimer ??= setTimeout(() => this.#leave(Math.max(0, SERVED_SECONDS - seconds)), seconds * 1000);
  }

  /** Goes if the other edge serves it, or as soon as it does within so many seconds; else it stays. */
  #leave(patience) {
    this.#leaveTimer = null;
    if (!this.#home || !this.#next) return;
    if (!this.#next.since.size && patience) {
      this.#next.mayLeave = true;
      this.#leaveTimer = setTimeout(() => this.#leave(0), patience * 1000);
      return;
    }
    if (!this.#next.since.size) {
      this.#release(this.#next);
      this.#next = null;
      return;
    }
    this.#send(this.#home, {type: "Unsubscribe"});
    this.#release(this.#home);
    [this.#home, this.#next] = [this.#next, null];
  }

  #closed(link, code, reason) {
    if (code === EXPIRED) return this.#stop(expired(link.edge));
    if (code === TOO_LARGE) {
      return this.#stop(new TocsinError("too-large", `${link.edge} takes no message as large as one that was sent`));
    }
    this.#lost(link, reason);
  }

  #lost(link, reason) {
    this.#release(link);
    clearTimeout(this.#leaveTimer);
    this.#leaveTimer = null;
    if (link === this.#next) {
      this.#next = null;
    } else {
      [this.#home, this.#next] = [this.#next, null];
      if (!this.#home) this.#retry(link, reason);
    }
  }

  /** Waits longer after each round through the edges, and never all subscribers for the same time. */
  #retry(link, reason) {
    this.#failures += 1;
    if (!this.#begun && this.#failures >= this.#edges.length) {
      const message = `no edge can be subscribed at: ${link.edge}: ${reason || "no connection; is the token right?"}`;
      return this.#stop(new TocsinError("unavailable", message));
    }
    const {firstWait, longestWait} = this.#rules;
    const longest = Math.min(longestWait, firstWait * 2 ** Math.min(Math.floor(this.#failures / this.#edges.length), 10));
    this.#retryTimer = setTimeout(() => this.#goHome(), longest * (0.5 + Math.random() / 2) * 1000);
  }

  #release(link) {
    link.socket.onopen = link.socket.onmessage = link.socket.onclose = null;
    link.socket.close();
  }

  #releaseAll() {
    for (const timer of [this.#retryTimer, this.#leaveTimer]) clearTimeout(timer);
    for (const link of [this.#home, this.#next]) if (link) this.#release(link);
    this.#home = this.#next = this.#leaveTimer = null;
  }

  #stop(error) {
    this.#over ??= {error};
    this.#releaseAll();
    this.#start.reject(error ?? new TocsinError("closed", "the subscription is closed"));
    this.#started.catch(() => {});
    this.#wake();
  }

  #wake() {
    this.#reader?.();
    this.#reader = null;
  }
}

const clientUrl = (broker) => `${broker.replace(/\/$/, "").replace(/^http/, "ws")}/client`;

/** Pages cannot set headers of a WebSocket: the token is among the protocols they offer. */
function protocols(token) {
  if (!token) return [];
  const bytes = String.fromCharCode(...new TextEncoder().encode(token));
  return ["tocsin", `bearer.${btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`];
}

/** A name that nobody else has: it begins with that of whom a signed token was made for, which only a broker can judge. */
function madeUp(token = "") {
  const number = crypto.getRandomValues(new Uint32Array(4)).join("-");
  try {
    return `${JSON.parse(atob(token.split(".")[0].replaceAll("-", "+").replaceAll("_", "/"))).name}+${number}`;
  } catch {
    return `client-${number}`;
  }
}
