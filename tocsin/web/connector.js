/** Being connected: finding the broker, logging in there, moving to another, and coming back after a loss. */

import {TocsinError, call, decode, encode} from "./wire.js";

const VERSION = 1;
const [GOING_AWAY, UNAUTHORIZED, ELSEWHERE, REPLACED, FLOOD] = [1001, 4401, 4404, 4409, 4429];
const FATAL = {
  [UNAUTHORIZED]: ["unauthorized", "the broker does not accept the token; connect again with a valid one"],
  [REPLACED]: ["replaced", "another program has connected under this subscriber's name; stop one of them"],
};

/**
 * Keeps a subscriber connected. There is one connection that serves or is to serve, and while the subscriber moves a
 * second one, to where it goes, which takes over when it is welcomed there.
 *
 * What its `subscriber` does: `cursors()` are for a login, `welcomed(link, welcome, away)` and
 * `received(link, message)` take what comes, `ready()` sends what waits, `isThirsty(link)` says whether notes were
 * dropped on that connection and there is room for them again, `tell(kind, message)` is for people, and
 * `failed(error)` is the end. A `link` is a connection's number.
 */
export class Connector {
  #coordinator; #token; #location; #rules; #subscriber;
  #main = null; #next = null; #url = null; #opened = 0; #failures = 0; #over = false;
  #timer = null; #renewTimer = null; #excused = new Set();

  constructor(coordinator, token, location, rules, subscriber) {
    [this.#coordinator, this.#token, this.#location, this.#rules] = [coordinator, token, location, rules];
    this.#subscriber = subscriber;
  }

  /** The number of the connection that requests go to, if there is one. */
  get serving() {
    return this.#main?.welcomed ? this.#main.number : null;
  }

  /** The number of the newest connection. */
  get newest() {
    return this.#opened;
  }

  /** Where the subscriber is, or is about to be. */
  get url() {
    return this.#main?.url;
  }

  /** Whether the broker to move to is about to say what it holds, so that this had better not change. */
  get entering() {
    return Boolean(this.#next?.entered);
  }

  start() {
    this.#locate(true);
  }

  stop() {
    this.#over = true;
    for (const timer of [this.#timer, this.#renewTimer]) clearTimeout(timer);
    for (const link of [this.#main, this.#next]) if (link) this.#release(link);
    this.#main = this.#next = null;
  }

  /** Sends a message, if a broker serves. */
  send(message) {
    if (this.#main?.welcomed) this.#main.socket.send(encode(message));
  }

  /** Logs in once more where it is, if something was dropped for want of room and there is room again. */
  quench() {
    if (this.#renewTimer || this.#next || !this.#main?.welcomed) return;
    if (!this.#subscriber.isThirsty(this.#main.number)) return;
    this.#next = this.#open(this.#main.url);
    this.#renewTimer = setTimeout(() => {
      this.#renewTimer = null;
      this.quench();
    }, this.#rules.renew * 1000);
  }

  async #locate(first = false) {
    try {
      const query = this.#location ? `?x=${this.#location[0]}&y=${this.#location[1]}` : "";
      const {url} = await call(this.#coordinator, `/broker${query}`, this.#token);
      if (!this.#over) this.#main = this.#open(url);
    } catch (error) {
      const final = ["unauthorized", "forbidden", "not-found"].includes(error.code) || (first && !error.code);
      if (this.#over) return;
      if (final) return this.#subscriber.failed(error);
      this.#subscriber.tell("trouble", error.message);
      if (this.#url) this.#main = this.#open(this.#url);
      else this.#wait(false);
    }
  }

  #open(url) {
    const link = {number: ++this.#opened, url, socket: new WebSocket(url), entered: false, welcomed: null, listed: []};
    link.deadline = setTimeout(() => this.#drop(link, "did not welcome in time"), this.#rules.login * 1000);
    link.socket.onopen = () => this.#enter(link);
    link.socket.onmessage = ({data}) => this.#received(link, data);
    link.socket.onclose = ({code}) => this.#lost(link, code);
    return link;
  }

  #enter(link) {
    link.entered = true;
    const cursors = this.#subscriber.cursors();
    link.socket.send(encode({type: "login", token: this.#token, version: VERSION, cursors}));
  }

  #received(link, text) {
    let message;
    try {
      message = decode(text);
      if ((message.type === "welcome") === (link.welcomed !== null) && message.type !== "error") throw new Error();
    } catch {
      return this.#drop(link, "sent what is no message, or out of turn");
    }
    switch (message.type) {
      case "welcome": return this.#welcomed(link, message);
      case "moved": return this.#move(message.url);
      default: return this.#subscriber.received(link.number, message);
    }
  }

  #welcomed(link, welcome) {
    link.listed.push(...welcome.subscriptions);
    if (welcome.more) return;
    clearTimeout(link.deadline);
    const before = this.#main;
    if (link === this.#next) [this.#main, this.#next] = [link, null];
    link.welcomed = Date.now();
    const away = !before?.welcomed || before === link, moved = link.url !== before.url;
    if (before !== link) this.#release(before);
    this.#url = link.url;
    this.#subscriber.welcomed(link.number, {...welcome, subscriptions: link.listed}, away);
    if (away || moved) {
      this.#subscriber.tell(away ? "connected" : "moved", `${away ? "connected" : "moved"} to ${link.url}`);
    }
    this.quench();
  }

  #move(url) {
    if (!this.#main || url === this.#main.url || url === this.#next?.url) return;
    if (this.#next) this.#release(this.#next);
    this.#next = this.#open(url);
  }

  /** Lets a connection go. A login without an answer may still arrive, and replace a later connection. */
  #release(link) {
    clearTimeout(link.deadline);
    if (link.entered && !link.welcomed) this.#excused.add(link.url);
    link.socket.onopen = link.socket.onmessage = link.socket.onclose = null;
    link.socket.close();
  }

  #drop(link, reason) {
    this.#subscriber.tell("trouble", `the broker at ${link.url} ${reason}`);
    this.#lost(link, 1006);
  }

  #lost(link, code) {
    const own = code === REPLACED && this.#excused.delete(link.url);
    this.#release(link);
    if (link === this.#next) {
      this.#next = null;
      this.#subscriber.ready();
      this.quench();
    } else if (this.#next && (!FATAL[code] || this.#next.entered)) {
      [this.#main, this.#next] = [this.#next, null];
    } else if (FATAL[code] && !own) {
      this.#subscriber.failed(new TocsinError(...FATAL[code]));
    } else {
      this.#main = null;
      this.#retry(link, code);
    }
  }

  #retry(link, code) {
    if (link.welcomed && Date.now() - link.welcomed >= this.#rules.steady * 1000) this.#failures = 0;
    if (code === ELSEWHERE) this.#url = null;
    this.#wait(link.welcomed && code !== ELSEWHERE && code !== GOING_AWAY, code === FLOOD ? this.#rules.floodWait : 0);
  }

  /** Waits longer after each failure, and never all subscribers for the same time. */
  #wait(sameBroker, least = 0) {
    const longest = Math.min(this.#rules.longestWait, this.#rules.firstWait * 2 ** Math.min(this.#failures++, 32));
    this.#subscriber.tell("reconnecting", "no broker serves; trying again");
    this.#timer = setTimeout(() => {
      if (sameBroker && this.#url) this.#main = this.#open(this.#url);
      else this.#locate();
    }, (least + longest * (0.5 + Math.random() / 2)) * 1000);
  }
}
