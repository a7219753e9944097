/** A subscriber: what it wants, what its broker holds of that, and what it has taken. */

import {Connector} from "./connector.js";
import {Requests} from "./requests.js";
import {Stream} from "./stream.js";
import {Subscription} from "./subscription.js";
import {TocsinError, call, named, words} from "./wire.js";

/** The token's subscriber leaves for good: all it subscribed to ends, and the token is worthless. */
export async function unregister(coordinator, token) {
  await call(coordinator, "/users/me", token, {method: "DELETE"});
}

/**
 * A connected subscriber. As an EventTarget it tells `connected`, `moved`, `reconnecting`, `slow`, `gap`, `trouble`,
 * each with a sentence as `detail.message`, and `failed` with the error that has ended it.
 */
export class Subscriber extends EventTarget {
  #coordinator; #token; #rules; #connector; #requests; #over = false;
  #streams = new Map(); #gone = new Map(); #leaving = new Map(); #unsaid = new Set(); #untold = 0; #ackTimer = null;
  #started; #start;

  constructor(coordinator, token, location, rules) {
    super();
    [this.#coordinator, this.#token, this.#rules] = [coordinator, token, rules];
    this.#connector = new Connector(coordinator, token, location, rules, {
      cursors: () => Object.fromEntries([...this.#streams].map(([key, stream]) => [key, stream.cursor])),
      welcomed: (link, welcome, away) => this.#welcomed(link, welcome, away),
      received: (link, message) => this.#received(link, message),
      ready: () => this.#requests.passAll(),
      isThirsty: (link) => [...this.#streams.values()].some(({backlog, deaf}) => !backlog.length && link <= deaf),
      tell: (kind, message) => this.#tell(kind, message),
      failed: (error) => this.#stop(error),
    });
    this.#requests = new Requests(this.#connector, rules.retry);
    this.#started = new Promise((resolve, reject) => { this.#start = {resolve, reject}; });
  }

  start() {
    this.#connector.start();
    return this.#started;
  }

  /**
   * Subscribes; resolves when the subscription is stored, rejects with what is wrong with it. `onGap` is called with a
   * {@link Gap} where the iteration comes to notes that are not kept any more.
   * @param {string} channel
   * @param {Record<string, unknown>} parameters
   * @param {{live?: boolean, onGap?: (gap: Gap) => void}} options
   * @returns {Promise<Subscription>}
   */
  async subscribe(channel, parameters = {}, {live = false, onGap} = {}) {
    await this.#leaving.get(named({channel}));
    const asked = words({channel, parameters}), lively = live && !this.#isWantedWhole(asked);
    const {held} = await this.#requests.ask({type: "subscribe", channel, parameters, live: lively});
    const stream = this.#streams.get(String(held.subscription)) ?? this.#admit(held);
    const subscription = new Subscription(this, stream.held, {live, asked, onGap});
    stream.join(subscription);
    // Somebody else wants it, in other words.
    const whole = {type: "subscribe", channel, parameters, live: false};
    if (held.live && !stream.live) this.#requests.ask(whole).catch(() => {});
    return subscription;
  }

  /**
   * Publishes records; resolves when those accepted are on disk. What is lost on the way is sent again.
   * The first refusals are listed, `unlisted` counts the others.
   * @returns {Promise<{accepted: number, refused: {index: number, reason: string}[], unlisted: number}>}
   */
  async publish(feed, records) {
    if (!Array.isArray(records)) {
      throw new TocsinError("invalid", "publish takes an array of records; write [record] for a single one");
    }
    const {accepted, refused = [], unlisted = 0} = await this.#requests.ask({type: "publish", feed, records});
    return {accepted, refused, unlisted};
  }

  /** Logs out. Subscriptions stay, and what is found meanwhile comes the next time. */
  close() {
    if (this.#over) return;
    this.#acknowledge();
    this.#connector.send({type: "logout"});
    this.#stop(null);
  }

  /** Leaves for good: all subscriptions end, the token is worthless, and the connection closes. */
  async unregister() {
    await unregister(this.#coordinator, this.#token);
    if (!this.#over) this.#stop(null);
  }

  /** For subscriptions: a reader has taken its notes up to an execution. */
  took(reader, execution) {
    reader.taken = execution;
    const stream = this.#streams.get(String(reader.number));
    if (stream?.readers.has(reader)) this.#advance(stream);
  }

  /** For subscriptions: a reader wants no more. */
  async leave(reader) {
    const stream = this.#streams.get(String(reader.number));
    if (!stream?.readers.delete(reader)) return;
    if (stream.readers.size) return this.#advance(stream);
    const left = this.#abandon(stream.held);
    this.#abandonNamesakes(stream.words);
    await left;
  }

  #advance(stream) {
    const count = stream.advance();
    if (!count) return;
    this.#unsay(stream);
    this.#untold += count;
    if (this.#untold >= this.#rules.ackNotes) this.#acknowledge();
    this.#connector.quench();
  }

  #unsay(stream) {
    this.#unsaid.add(String(stream.held.subscription));
    this.#ackTimer ??= setTimeout(() => this.#acknowledge(), this.#rules.ack * 1000);
  }

  #acknowledge() {
    clearTimeout(this.#ackTimer);
    this.#ackTimer = null;
    if (this.#connector.serving === null || !this.#unsaid.size) return;
    const cursors = [...this.#unsaid].map((key) => [key, this.#streams.get(key).cursor]);
    this.#unsaid.clear();
    this.#untold = 0;
    this.#connector.send({type: "ack", cursors: Object.fromEntries(cursors)});
  }

  #admit(held) {
    const key = String(held.subscription);
    if (!this.#streams.has(key)) this.#streams.set(key, new Stream(held));
    const stream = this.#streams.get(key);
    for (const [number, gone] of this.#gone) if (number === key || gone === stream.words) this.#gone.delete(number);
    return stream;
  }

  #forget(key) {
    this.#streams.delete(key);
    this.#unsaid.delete(key);
  }

  #abandon(held) {
    this.#forget(String(held.subscription));
    this.#gone.set(String(held.subscription), words(held));
    return this.#giveUp(held);
  }

  /** What a broker has listed under another number, and nobody reads. */
  #abandonNamesakes(same) {
    const unread = [...this.#streams.values()].filter((stream) => !stream.readers.size && stream.words === same);
    for (const {held} of unread) this.#abandon(held).catch(() => {});
  }

  /** What was given up, or is about to be, has another number. */
  #giveUpInstead(was, held) {
    if (!this.#gone.has(was) || was === String(held.subscription)) return false;
    this.#gone.set(String(held.subscription), this.#gone.get(was));
    const ask = this.#unsubscribing(was);
    if (!ask) return false;
    this.#requests.withdraw(ask);
    this.#requests.put({...ask, message: {...ask.message, subscription: held.subscription}});
    return true;
  }

  #unsubscribing(key) {
    return this.#requests.of("unsubscribe").find(({message}) => String(message.subscription) === key);
  }

  #giveUp({subscription, channel}) {
    const name = named({channel});
    const left = this.#requests.ask({type: "unsubscribe", subscription}).then(() => {}, (error) => {
      if (error.code !== "not-found") throw error;
    });
    const settled = left.catch(() => {}).then(() => {
      if (this.#leaving.get(name) === settled) this.#leaving.delete(name);
    });
    this.#leaving.set(name, settled);
    return left;
  }

  /** Whether somebody wants this with what is found while there is no connection: it is held once, for all of them. */
  #isWantedWhole(asked) {
    const readers = [...this.#streams.values()].flatMap((stream) => [...stream.readers]);
    return readers.some((reader) => !reader.live && reader.asked === asked)
      || this.#requests.of("subscribe").some(({message}) => !message.live && words(message) === asked);
  }

  #received(link, message) {
    switch (message.type) {
      case "notes": return this.#notes(link, message.notes);
      case "gap": return this.#gap(link, message);
      case "slow": return this.#tell("slow", `${message.waiting} bytes are under way and not read yet`);
      case "renewed": return this.#renewed(link, message);
      case "ended": return this.#ended(message);
      case "subscribed": this.#confirmed(link, message); // falls through
      case "unsubscribed": case "published": return this.#requests.answered(message);
      case "error":
        if (!this.#requests.answered(message)) this.#tell("trouble", `${message.message} (${message.code})`);
    }
  }

  #notes(link, notes) {
    for (const note of notes) {
      this.#streams.get(String(note.s))?.receive(note, link, this.#connector.newest, this.#rules.backlog);
    }
  }

  #gap(link, message) {
    const stream = this.#streams.get(String(message.subscription));
    const gap = stream?.skip(message, link, this.#connector.newest, this.#rules.backlog);
    if (!gap) return;
    const {channel, first, last} = gap;
    this.#tell("gap", `what executions ${first} to ${last} of ${channel} found is not kept any more`);
  }

  /** Before anything else of it can come. */
  #confirmed(link, {id, held, history}) {
    if (this.#requests.has(id)) this.#admit(held).told(link, held, history);
  }

  /** A subscription goes on, perhaps under another number. */
  #renewed(link, {was, held, history}) {
    const before = String(was), now = String(held.subscription), stream = this.#streams.get(before);
    this.#giveUpInstead(before, held);
    if (!stream) return;
    if (before !== now) {
      this.#forget(before);
      if (!this.#streams.has(now)) this.#streams.set(now, stream);
      const renewed = this.#streams.get(now);
      for (const reader of stream.readers) {
        reader.number = held.subscription;
        if (renewed !== stream) renewed.join(reader);
      }
    }
    const renewed = this.#streams.get(now);
    renewed.held = held;
    renewed.told(link, held, history);
    this.#resume(renewed, held, 0);
  }

  #ended({subscription, code, message}) {
    const key = String(subscription), stream = this.#streams.get(key);
    if (!stream) return;
    this.#forget(key);
    // Should a broker that has not heard of it list it again, it is given up there.
    this.#gone.set(key, stream.words);
    for (const reader of stream.readers) reader.end(new TocsinError(code, message));
  }

  #welcomed(link, {subscriptions, newest = {}, histories = {}}, away) {
    this.#reconcile(link, subscriptions, away ? newest : {}, histories);
    this.#requests.passAll();
    this.#start.resolve();
  }

  /** What the broker holds and what is wanted are made the same. */
  #reconcile(link, subscriptions, missed, histories) {
    const listed = new Set(subscriptions.map(({subscription}) => String(subscription)));
    for (const held of subscriptions) {
      if (this.#departs(held, listed)) continue;
      const stream = this.#admit(held);
      stream.told(link, held, histories[held.channel]);
      this.#resume(stream, held, missed[held.channel] ?? 0);
    }
    for (const [key, stream] of [...this.#streams]) {
      if (listed.has(key)) continue;
      if (stream.readers.size) this.#again(key, stream);
      else this.#forget(key);
    }
  }

  #resume(stream, held, missed) {
    if (missed > stream.missed) stream.missed = missed;
    if (held.cursor < stream.taken) this.#unsay(stream);
  }

  /** Whether what a broker holds was given up, perhaps under another number; then it is given up there. */
  #departs(held, listed) {
    const key = String(held.subscription);
    if (this.#streams.has(key)) return false;
    if (this.#unsubscribing(key)) return true;
    const known = words(held);
    const gone = [...this.#gone].filter(([number, same]) => number === key || same === known).map(([number]) => number);
    if (gone.some((number) => !listed.has(number) && this.#giveUpInstead(number, held))) return true;
    const asked = this.#requests.of("subscribe").filter(({message}) => named(message) === named(held));
    // It may be what a request brought about whose answer was lost.
    if (!gone.length || asked.some(({link}) => link !== null)) return false;
    for (const ask of asked) this.#requests.withdraw(ask);
    this.#abandon(held).catch(() => {}).then(() => asked.forEach((ask) => this.#requests.put(ask)));
    return true;
  }

  /** Asks for what was held and is not known any more; it may get another number. */
  async #again(key, stream) {
    const {channel, parameters} = stream.held, {live, incarnation} = stream;
    try {
      const {held} = await this.#requests.ask({type: "subscribe", channel, parameters, live, incarnation});
      const renewed = this.#admit(held);
      if (!stream.readers.size && !renewed.readers.size) return this.#abandon(held).catch(() => {});
      if (renewed === stream) return;
      this.#forget(key);
      for (const reader of stream.readers) {
        reader.number = held.subscription;
        renewed.join(reader);
      }
    } catch (error) {
      this.#forget(key);
      for (const reader of stream.readers) reader.end(error);
      // A broker that has not heard of the drop may have listed it under another number.
      if (error.code === "gone") this.#abandonNamesakes(stream.words);
    }
  }

  #stop(error) {
    this.#over = true;
    const reason = error ?? new TocsinError("closed", "the connection is closed; connect again");
    clearTimeout(this.#ackTimer);
    this.#connector.stop();
    this.#requests.stop(reason);
    for (const {readers} of this.#streams.values()) for (const reader of readers) reader.end(error);
    this.#start.reject(reason);
    this.#started.catch(() => {});
    if (error) this.dispatchEvent(new CustomEvent("failed", {detail: {message: error.message, error}}));
  }

  #tell(kind, message) {
    this.dispatchEvent(new CustomEvent(kind, {detail: {message, url: this.#connector.url}}));
  }
}
