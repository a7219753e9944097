/** What the application gets: an iterator of notes for each of its subscriptions. */

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

  constructor(me, held, {live, asked, onGap}) {
    [this.#me, this.#onGap] = [me, onGap];
    Object.assign(this, {channel: held.channel, parameters: held.parameters, number: held.subscription, taken: 0});
    Object.assign(this, {live, asked});
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
