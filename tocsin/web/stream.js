/** What has come of a subscription: each note once and in order, acknowledged when all readers have taken it. */

import {Gap} from "./subscription.js";
import {words} from "./wire.js";

const CONNECTIONS = 4;
// So many histories that were taken back are remembered, for one of them may be restored.
const BRANCHES = 8;

/** One subscription number: what was delivered and taken of it, and who reads it. */
export class Stream {
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

  /** Whether nobody wants what is found while there is no connection. */
  get live() {
    return [...this.readers].every(({live}) => live);
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
