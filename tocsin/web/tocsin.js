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

/** How patient and how large a connection is: seconds, notes and factors. */
export const RULES = {
  login: 10, firstWait: 0.25, longestWait: 30, floodWait: 30, steady: 10, ack: 0.5, ackNotes: 100, backlog: 1000,
  renew: 1, retry: 1,
};

const VERSION = 1;
const CONNECTIONS = 4;
// So many histories that were taken back are remembered, for one of them may be restored.
const BRANCHES = 8;
const [GOING_AWAY, UNAUTHORIZED, ELSEWHERE, REPLACED, FLOOD] = [1001, 4401, 4404, 4409, 4429];
const PASSING = new Set(["busy", "unavailable", "storage", "internal"]);
const FATAL = {
  [UNAUTHORIZED]: ["unauthorized", "the broker does not accept the token; connect again with a valid one"],
  [REPLACED]: ["replaced", "another program has connected under this subscriber's name; stop one of them"],
};

/** What was wrong, and what to do; `code` is for programs, as docs/protocol.md lists them. */
export class TocsinError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/**
 * Connects a subscriber; resolves when a broker serves it, rejects when there is no coordinator or the token is wrong.
 * @param {string} coordinator the coordinator's URL
 * @param {{token: string, place?: [number, number], rules?: Partial<typeof RULES>}} options
 * @returns {Promise<Subscriber>}
 */
export async function connect(coordinator, {token, place, rules} = {}) {
  const me = new Subscriber(coordinator, token, place, {...RULES, ...rules});
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

/** The token's subscriber leaves for good: all it subscribed to ends, and the token is worthless. */
export async function unregister(coordinator, token) {
  await call(coordinator, "/users/me", token, {method: "DELETE"});
}

/** What one execution found for one subscription; `recovered` if that was while the subscriber was away. */
export class Note {
  constructor(channel, {s, e, payload}, recovered, done) {
    Object.assign(this, {channel, subscription: s, execution: e, rows: payload, recovered});
    /** Acknowledges it: it does not come again. Taking the next one does this, too. */
    this.done = () => done(e);
  }
}

/** What executions `first` to `last` found for a subscription is not kept any more. */
export class Gap {
  constructor(channel, {subscription, first, last}) {
    Object.assign(this, {channel, subscription, first, last});
  }
}

/** An async iterator of notes, in order and each once. Leaving its loop does not unsubscribe; `close` does. */
export class Subscription {
  #me; #onGap; #waiting = []; #reader = null; #current = null; #end = null;

  constructor(me, held, onGap) {
    [this.#me, this.#onGap] = [me, onGap];
    Object.assign(this, {channel: held.channel, parameters: held.parameters, number: held.subscription, taken: 0});
  }

  [Symbol.asyncIterator]() {
    // Not the iterator itself: a loop that is left would call its `return`, and another loop is to go on.
    return {next: () => this.next()};
  }

  /** @returns {Promise<IteratorResult<Note>>} */
  async next() {
    this.#current?.done();
    this.#current = null;
    for (;;) {
      while (!this.#waiting.length) {
        if (this.#end?.error) throw this.#end.error;
        if (this.#end) return {done: true, value: undefined};
        await new Promise((resolve) => { this.#reader = resolve; });
      }
      const {item, counted} = this.#waiting.shift();
      if (item instanceof Gap) {
        this.#onGap?.(item);
        this.#done(counted(item.last));
      } else {
        this.#current = item;
        return {done: false, value: item};
      }
    }
  }

  /** Unsubscribes, unless the same was subscribed to more than once; then only the last close does. */
  close() {
    this.#waiting = [];
    this.end();
    return this.#me.leave(this);
  }

  /** `counted` gives the execution as it counts by then: the data cluster may have other data than before. */
  put(item, recovered, counted) {
    const note = () => new Note(this.channel, item, recovered, (execution) => this.#done(counted(execution)));
    this.#waiting.push({item: item instanceof Gap ? item : note(), counted});
    this.#wake();
  }

  end(error = null) {
    this.#end ??= {error};
    this.#wake();
  }

  #done(execution) {
    if (execution > this.taken) this.#me.took(this, execution);
  }

  #wake() {
    this.#reader?.();
    this.#reader = null;
  }
}

/** One subscription number: what was delivered and taken of it, and who reads it. */
class Stream {
  readers = new Set(); kept = []; backlog = []; missed = 0; deaf = -1; left = new Set(); heard = new Map(); cuts = [];
  branches = [];

  constructor(held) {
    this.held = held;
    this.words = words(held);
    this.history = [[held.incarnation ?? "", 0]];
    this.last = this.taken = held.cursor;
  }

  /** Under which executions are counted. */
  get incarnation() {
    return this.history.at(-1)[0];
  }

  /** What was taken, as brokers are told. */
  get cursor() {
    return this.incarnation ? [this.taken, this.incarnation] : this.taken;
  }

  /** A broker has said under which incarnation it counts. Of two brokers one may know less than the other. */
  told(link, {incarnation = ""}, history = []) {
    this.heard.set(link, incarnation);
    if (this.heard.size > CONNECTIONS) this.heard.delete(Math.min(...this.heard.keys()));
    if (incarnation === this.incarnation || this.left.has(incarnation)) return;
    this.#goOn(history.length ? history : [[incarnation, 0]]);
  }

  #goOn(history) {
    const common = shared(history, this.incarnation, this.history), place = placeOf(history, this.incarnation);
    this.left.add(this.incarnation);
    if (common < this.last) this.#cut(common);
    this.history = place < 0 ? history : [...this.history.slice(0, -1), ...history.slice(place)];
    for (const branch of this.branches) this.#restore(branch, history);
  }

  /** What was delivered after `common` counts no more, unless a later history has it again. */
  #cut(common) {
    const taken = new Map([this, ...this.readers].map((each) => [each, each.taken]));
    this.branches.push({before: this.history, last: this.last, taken});
    if (this.branches.length > BRANCHES) this.branches.shift();
    this.cuts.push(common);
    this.last = common;
    for (const each of [this, ...this.readers]) if (each.taken > common) each.taken = common;
    if (this.missed > common) this.missed = common;
    while (this.backlog.length && this.backlog.at(-1) > common) this.backlog.pop();
  }

  /** What had been delivered and taken counts again, as far as a history shares it. */
  #restore({before, last, taken}, history) {
    const again = shared(history, before.at(-1)[0], before);
    this.last = larger(this.last, smaller(last, again));
    for (const [each, had] of taken) each.taken = larger(each.taken, smaller(had, again));
  }

  /** An execution that was delivered when there were so many cuts, as it counts now. */
  #counted(execution, epoch) {
    return this.cuts.slice(epoch).reduce(smaller, execution);
  }

  /** Takes a note in, unless it is a repetition or there is no room; then none later of the same connection either. */
  receive(note, link, newest, most) {
    if (this.#takes(note.e, link, newest, most)) this.#give(note, note.e <= this.missed);
  }

  /** The same with word that some notes will not come; gives what of it is new. */
  skip({subscription, first, last}, link, newest, most) {
    const since = first > this.last ? first : this.last + (typeof this.last === "bigint" ? 1n : 1);
    if (!this.#takes(last, link, newest, most)) return null;
    const gap = new Gap(this.held.channel, {subscription, first: since, last});
    this.#give(gap, true);
    return gap;
  }

  #takes(execution, link, newest, most) {
    if ((this.heard.get(link) ?? "") !== this.incarnation) return false;
    if (execution <= this.last || link <= this.deaf) return false;
    if (this.backlog.length >= most) {
      this.deaf = newest;
      return false;
    }
    this.last = execution;
    this.backlog.push(execution);
    return true;
  }

  #give(item, recovered) {
    const epoch = this.cuts.length, counted = (execution) => this.#counted(execution, epoch);
    if (!this.readers.size) this.kept.push([item, recovered, counted]);
    for (const reader of this.readers) reader.put(item, recovered, counted);
  }

  join(reader) {
    reader.taken = this.readers.size ? this.last : this.taken;
    this.readers.add(reader);
    for (const [note, recovered, counted] of this.kept.splice(0)) reader.put(note, recovered, counted);
  }

  /** Whether all readers have taken more than was known; gives how many notes. */
  advance() {
    const taken = [...this.readers].reduce((least, {taken}) => (least === null || taken < least ? taken : least), null);
    if (taken === null || taken <= this.taken) return 0;
    this.taken = taken;
    const before = this.backlog.length;
    while (this.backlog.length && this.backlog[0] <= taken) this.backlog.shift();
    return before - this.backlog.length;
  }
}

/**
 * A connected subscriber. As an EventTarget it tells `connected`, `moved`, `reconnecting`, `slow`, `gap`, `trouble`, each
 * with a sentence as `detail.message`, and `failed` with the error that has ended it.
 */
export class Subscriber extends EventTarget {
  #coordinator; #token; #place; #rules;
  #main = null; #next = null; #url = null; #opened = 0; #failures = 0; #over = null; #timer = null;
  #streams = new Map(); #gone = new Map(); #asks = new Map(); #ids = 0; #leaving = new Map(); #excused = new Set();
  #unsaid = new Set(); #untold = 0; #ackTimer = null; #renewTimer = null;
  #started; #start;

  constructor(coordinator, token, place, rules) {
    super();
    [this.#coordinator, this.#token, this.#place, this.#rules] = [coordinator, token, place, rules];
    this.#started = new Promise((resolve, reject) => { this.#start = {resolve, reject}; });
  }

  start() {
    this.#locate(true);
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
    const {held} = await this.#ask({type: "subscribe", channel, parameters, live});
    const stream = this.#streams.get(String(held.subscription)) ?? this.#admit(held);
    const subscription = new Subscription(this, stream.held, onGap);
    stream.join(subscription);
    return subscription;
  }

  /**
   * Publishes records; resolves when those accepted are on disk. What is lost on the way is sent again.
   * The first refusals are listed, `unlisted` counts the others.
   * @returns {Promise<{accepted: number, refused: {index: number, reason: string}[], unlisted: number}>}
   */
  async publish(feed, records) {
    const {accepted, refused = [], unlisted = 0} = await this.#ask({type: "publish", feed, records});
    return {accepted, refused, unlisted};
  }

  /** Logs out. Subscriptions stay, and what is found meanwhile comes the next time. */
  close() {
    if (this.#over) return;
    this.#acknowledge();
    this.#send({type: "logout"});
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
    this.#quench();
  }

  #unsay(stream) {
    this.#unsaid.add(String(stream.held.subscription));
    this.#ackTimer ??= setTimeout(() => this.#acknowledge(), this.#rules.ack * 1000);
  }

  #acknowledge() {
    clearTimeout(this.#ackTimer);
    this.#ackTimer = null;
    if (!this.#main?.welcomed || !this.#unsaid.size) return;
    const cursors = [...this.#unsaid].map((key) => [key, this.#streams.get(key).cursor]);
    this.#unsaid.clear();
    this.#untold = 0;
    this.#send({type: "ack", cursors: Object.fromEntries(cursors)});
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
    this.#asks.delete(ask.message.id);
    this.#put({...ask, message: {...ask.message, subscription: held.subscription}});
    return true;
  }

  #unsubscribing(key) {
    return this.#asked("unsubscribe").find(({message}) => String(message.subscription) === key);
  }

  #giveUp({subscription, channel}) {
    const name = named({channel});
    const left = this.#ask({type: "unsubscribe", subscription}).then(() => {}, (error) => {
      if (error.code !== "not-found") throw error;
    });
    const settled = left.catch(() => {}).then(() => {
      if (this.#leaving.get(name) === settled) this.#leaving.delete(name);
    });
    this.#leaving.set(name, settled);
    return left;
  }

  #ask(request) {
    return new Promise((resolve, reject) => this.#put({message: request, resolve, reject}));
  }

  #put({message, resolve, reject}) {
    if (this.#over) return reject(this.#over);
    const id = ++this.#ids;
    this.#asks.set(id, {message: {...message, id}, resolve, reject, link: null});
    this.#pass(id);
  }

  #asked(type) {
    return [...this.#asks.values()].filter(({message}) => message.type === type);
  }

  /** Sends a request, unless the broker to move to is about to say what it holds. */
  #pass(id) {
    const ask = this.#asks.get(id);
    if (!ask || !this.#main?.welcomed || (this.#next?.entered && ask.message.type !== "publish")) return;
    ask.link = this.#main.number;
    this.#send(ask.message);
  }

  /** Sends what this connection has not heard yet. */
  #passAll() {
    for (const [id, {link}] of this.#asks) if (link !== this.#main?.number) this.#pass(id);
  }

  #answered(answer) {
    const ask = this.#asks.get(answer.id);
    if (!ask) {
      if (answer.type === "error") this.#tell("trouble", `${answer.message} (${answer.code})`);
    } else if (answer.type === "error" && (PASSING.has(answer.code) || answer.retry_after != null)) {
      setTimeout(() => this.#pass(answer.id), (answer.retry_after ?? this.#rules.retry) * 1000);
    } else {
      this.#asks.delete(answer.id);
      if (answer.type === "error") ask.reject(new TocsinError(answer.code, answer.message));
      else ask.resolve(answer);
    }
  }

  #send(message) {
    if (this.#main?.welcomed) this.#main.socket.send(encode(message));
  }

  async #locate(first = false) {
    try {
      const query = this.#place ? `?x=${this.#place[0]}&y=${this.#place[1]}` : "";
      const {url} = await call(this.#coordinator, `/broker${query}`, this.#token);
      if (!this.#over) this.#main = this.#open(url);
    } catch (error) {
      const final = ["unauthorized", "forbidden", "not-found"].includes(error.code) || (first && !error.code);
      if (this.#over) return;
      if (final) return this.#stop(error);
      this.#tell("trouble", error.message);
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
    const cursors = Object.fromEntries([...this.#streams].map(([key, stream]) => [key, stream.cursor]));
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
      case "notes": return this.#notes(link, message.notes);
      case "gap": return this.#gap(link, message);
      case "moved": return this.#move(message.url);
      case "slow": return this.#tell("slow", `${message.waiting} bytes are under way and not read yet`);
      case "renewed": return this.#renewed(link, message);
      case "ended": return this.#ended(message);
      case "subscribed": this.#confirmed(link, message); // falls through
      case "unsubscribed": case "published": case "error": return this.#answered(message);
    }
  }

  #notes(link, notes) {
    for (const note of notes) {
      this.#streams.get(String(note.s))?.receive(note, link.number, this.#opened, this.#rules.backlog);
    }
  }

  #gap(link, message) {
    const stream = this.#streams.get(String(message.subscription));
    const gap = stream?.skip(message, link.number, this.#opened, this.#rules.backlog);
    if (gap) this.#tell("gap", `what executions ${gap.first} to ${gap.last} of ${gap.channel} found is not kept any more`);
  }

  /** Before anything else of it can come. */
  #confirmed(link, {id, held, history}) {
    if (this.#asks.has(id)) this.#admit(held).told(link.number, held, history);
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
    renewed.told(link.number, held, history);
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

  #welcomed(link, {subscriptions: part, newest = {}, histories = {}, more = false}) {
    link.listed.push(...part);
    if (more) return;
    clearTimeout(link.deadline);
    const subscriptions = link.listed;
    const before = this.#main;
    if (link === this.#next) [this.#main, this.#next] = [link, null];
    link.welcomed = Date.now();
    const away = !before?.welcomed || before === link, moved = link.url !== before.url;
    if (before !== link) this.#release(before);
    this.#url = link.url;
    this.#reconcile(link, subscriptions, away ? newest : {}, histories);
    this.#passAll();
    if (away || moved) this.#tell(away ? "connected" : "moved", `${away ? "connected" : "moved"} to ${link.url}`);
    this.#start.resolve();
    this.#quench();
  }

  /** What the broker holds and what is wanted are made the same. */
  #reconcile(link, subscriptions, missed, histories) {
    const listed = new Set(subscriptions.map(({subscription}) => String(subscription)));
    for (const held of subscriptions) {
      if (this.#departs(held, listed)) continue;
      const stream = this.#admit(held);
      stream.told(link.number, held, histories[held.channel]);
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
    const asked = this.#asked("subscribe").filter(({message}) => named(message) === named(held));
    // It may be what a request brought about whose answer was lost.
    if (!gone.length || asked.some(({link}) => link !== null)) return false;
    for (const {message} of asked) this.#asks.delete(message.id);
    this.#abandon(held).catch(() => {}).then(() => asked.forEach((ask) => this.#put(ask)));
    return true;
  }

  /** Asks for what was held and is not known any more; it may get another number. */
  async #again(key, stream) {
    const {channel, parameters, live} = stream.held, {incarnation} = stream;
    try {
      const {held} = await this.#ask({type: "subscribe", channel, parameters, live, incarnation});
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

  #move(url) {
    if (!this.#main || url === this.#main.url || url === this.#next?.url) return;
    if (this.#next) this.#release(this.#next);
    this.#next = this.#open(url);
  }

  /** Logs in once more where it is, if something was dropped for want of room and there is room again. */
  #quench() {
    if (this.#renewTimer || this.#next || !this.#main?.welcomed) return;
    const thirsty = ({backlog, deaf}) => !backlog.length && this.#main.number <= deaf;
    if (![...this.#streams.values()].some(thirsty)) return;
    this.#next = this.#open(this.#main.url);
    this.#renewTimer = setTimeout(() => {
      this.#renewTimer = null;
      this.#quench();
    }, this.#rules.renew * 1000);
  }

  /** Lets a connection go. A login without an answer may still arrive, and replace a later connection. */
  #release(link) {
    clearTimeout(link.deadline);
    if (link.entered && !link.welcomed) this.#excused.add(link.url);
    link.socket.onopen = link.socket.onmessage = link.socket.onclose = null;
    link.socket.close();
  }

  #drop(link, reason) {
    this.#tell("trouble", `the broker at ${link.url} ${reason}`);
    this.#lost(link, 1006);
  }

  #lost(link, code) {
    const own = code === REPLACED && this.#excused.delete(link.url);
    this.#release(link);
    if (link === this.#next) {
      this.#next = null;
      this.#passAll();
      this.#quench();
    } else if (this.#next && (!FATAL[code] || this.#next.entered)) {
      [this.#main, this.#next] = [this.#next, null];
    } else if (FATAL[code] && !own) {
      this.#stop(new TocsinError(...FATAL[code]));
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
    this.#tell("reconnecting", "no broker serves; trying again");
    this.#timer = setTimeout(() => {
      if (sameBroker && this.#url) this.#main = this.#open(this.#url);
      else this.#locate();
    }, (least + longest * (0.5 + Math.random() / 2)) * 1000);
  }

  #stop(error) {
    this.#over = error ?? new TocsinError("closed", "the connection is closed; connect again");
    for (const timer of [this.#timer, this.#ackTimer, this.#renewTimer]) clearTimeout(timer);
    for (const link of [this.#main, this.#next]) if (link) this.#release(link);
    this.#main = this.#next = null;
    for (const {reject} of this.#asks.values()) reject(this.#over);
    for (const {readers} of this.#streams.values()) for (const reader of readers) reader.end(error);
    this.#start.reject(this.#over);
    this.#started.catch(() => {});
    if (error) this.dispatchEvent(new CustomEvent("failed", {detail: {message: error.message, error}}));
  }

  #tell(kind, message) {
    this.dispatchEvent(new CustomEvent(kind, {detail: {message, url: this.#main?.url}}));
  }
}

async function call(coordinator, path, token, options = {}) {
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  if (options.body) headers["Content-Type"] = "application/json";
  const answer = await fetch(coordinator.replace(/\/$/, "") + path, {...options, headers});
  const body = await answer.json().catch(() => null);
  if (answer.ok && body) return body;
  const {code = "unavailable", message = `${coordinator} did not answer as a coordinator does`} = body?.error ?? {};
  throw new TocsinError(code, message);
}

/**
 * Up to which execution an incarnation and the newest of a history are the same. Whoever knows what was `before` it
 * need not begin anew: a copy that is restored twice has lost what came after the first time, but not what both have in
 * common.
 */
function shared(history, known, before = []) {
  const place = placeOf(history, known);
  if (place >= 0) return least(history.slice(place + 1));
  const common = before.findLastIndex(([incarnation]) => placeOf(history, incarnation) >= 0);
  if (common < 0) return 0;
  return least(before.slice(common + 1), shared(history, before[common][0]));
}

// Executions are numbers or, where they are very large, bigints, of which Math knows nothing.
const smaller = (one, other) => (other < one ? other : one);
const larger = (one, other) => (other > one ? other : one);

const placeOf = (history, known) => history.findLastIndex(([incarnation]) => incarnation === known);

/** The smallest of the executions with which these incarnations began. One whose channel was dropped shares none. */
const least = (eras, most = Infinity) =>
  eras.reduce((smallest, [, began]) => (began < smallest ? (began < 0 ? 0 : began) : smallest), most);

/** A channel's name, as names are compared. */
const named = ({channel}) => channel.toLowerCase();

/** What a subscription is to, as the data cluster spells it: it may get another number, but these stay. */
const words = (held) => JSON.stringify([named(held), held.parameters], (_, value) => {
  if (typeof value === "bigint") return `${value}n`;
  const plain = value && typeof value === "object" && !Array.isArray(value);
  return plain ? Object.fromEntries(Object.entries(value).sort()) : value;
});

const encode = (message) => JSON.stringify(message, (_, value) =>
  (typeof value === "bigint" ? JSON.rawJSON(String(value)) : value));

/** Only texts with very long numbers are read the slow way, which keeps their digits. */
const decode = (text) => (/\d{16}/.test(text) ? JSON.parse(text, exactly) : JSON.parse(text));

const exactly = (_, value, {source} = {}) =>
  (Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? "") ? BigInt(source) : value);
