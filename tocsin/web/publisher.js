/** Publishing to a head of an overlay: each publication is sent until it is stored. */

import {TocsinError} from "./tocsin.js";

const MOST_ATTRIBUTES = 64, MOST_NAME = 128, MOST_TEXT = 1024;

/** As the head judges it: printable characters, of which the space is the only blank, and no backtick. */
const NAME = /^(?:[^\p{C}\p{Z}`]| )+$/u;

/** So many are under way at once; the rest waits here, as a head that takes few at a time would be sent them in vain. */
const MOST_UNCONFIRMED = 1000;

/** The code with which a broker closes what has sent a message that is too large: the same again would not help. */
export const TOO_LARGE = 1009;

/** The code with which it closes what has shown a token that has expired since: the same again is not taken. */
export const EXPIRED = 4401;

/** What ends whoever has shown that token to a broker. */
export const expired = (broker) =>
  new TocsinError("unauthorized", `the token for ${broker} has expired; connect again with another`);

/** A connection that is given up if it does not open in time: a browser would wait for minutes. */
export function dial(url, protocols, seconds) {
  const socket = new WebSocket(url, protocols), deadline = setTimeout(() => socket.close(), seconds * 1000);
  for (const event of ["open", "close"]) socket.addEventListener(event, () => clearTimeout(deadline));
  return socket;
}

/**
 * A publisher of one name at one head. Numbers are the head's: it says which it has, and what waits goes on from there.
 * If it has lost its log, nothing that waits is stored, and all of it is numbered anew.
 */
export class ContentPublisher {
  #name; #head; #url; #protocols; #rules; #socket = null; #retryTimer = null; #error = null;
  #waiting = []; #stored = 0; #sent = 0; #incarnation = ""; #ready = false; #reached = false;

  constructor(name, head, url, protocols, rules) {
    [this.#name, this.#head, this.#url, this.#protocols, this.#rules] = [name, head, url, protocols, rules];
    this.#open();
  }

  /** Resolves when the head has stored it; rejects with what is wrong. */
  publish(content) {
    const text = encode(content);
    if (this.#error) throw this.#error;
    return new Promise((resolve, reject) => {
      this.#waiting.push({text, resolve, reject});
      this.#sendOn();
    });
  }

  /** Leaves. What is not stored may be lost. */
  close() {
    this.#end(new TocsinError("unavailable", "the connection was closed before this was stored"));
  }

  #open() {
    const socket = this.#socket = dial(this.#url, this.#protocols, this.#rules.open);
    const introduce = {type: "Introduce", publisher: this.#name, incarnation: this.#incarnation};
    socket.onopen = () => socket.send(JSON.stringify(introduce));
    socket.onmessage = ({data}) => this.#received(data);
    socket.onclose = ({code, reason}) => this.#lost(code, reason);
  }

  #received(text) {
    let message;
    try {
      message = JSON.parse(text);
    } catch {
      return this.#lost(0, "it sent what is no message");
    }
    switch (message.type) {
      case "Known": return this.#known(message);
      case "Stored": return this.#ready && this.#confirm(message.sequence);
      case "Refused": return this.#end(new TocsinError("invalid", message.message));
    }
  }

  #known({sequence, incarnation, continued}) {
    if (!continued) this.#stored = sequence;
    this.#confirm(sequence);
    [this.#ready, this.#reached, this.#incarnation, this.#sent] = [true, true, incarnation, 0];
    this.#sendOn();
  }

  /** Everything up to a number is stored. */
  #confirm(sequence) {
    while (this.#stored < sequence && this.#waiting.length) {
      this.#waiting.shift().resolve();
      this.#stored += 1;
    }
    // Of what another one of this name has published.
    this.#stored = Math.max(this.#stored, sequence);
    this.#sendOn();
  }

  /** Sends what waits and was not sent, as far as it may be under way. */
  #sendOn() {
    if (!this.#ready) return;
    this.#sent = Math.max(this.#sent, this.#stored);
    const upto = this.#stored + Math.min(this.#waiting.length, MOST_UNCONFIRMED);
    while (this.#sent < upto) {
      const {text} = this.#waiting[this.#sent - this.#stored];
      this.#send(++this.#sent, text);
    }
  }

  #send(sequence, text) {
    if (this.#socket.readyState === WebSocket.OPEN) {
      this.#socket.send(`{"type":"Publish","sequence":${sequence},"content":${text}}`);
    }
  }

  #lost(code, reason) {
    this.#release();
    if (code === TOO_LARGE) {
      return this.#end(new TocsinError("too-large", `${this.#head} takes no message as large as one that was sent`));
    }
    if (code === EXPIRED) return this.#end(expired(this.#head));
    if (!this.#reached) {
      const why = reason || "no connection; is the token right?";
      return this.#end(new TocsinError("unavailable", `no head can be published to at ${this.#head}: ${why}`));
    }
    this.#retryTimer = setTimeout(() => this.#open(), this.#rules.retry * 1000);
  }

  #release() {
    this.#ready = false;
    const socket = this.#socket;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  #end(error) {
    this.#error ??= error;
    clearTimeout(this.#retryTimer);
    this.#release();
    for (const {reject} of this.#waiting.splice(0)) reject(this.#error);
  }
}

/** A publication as JSON. What a head would refuse gets no number, and ends nothing: it is thrown here. */
function encode(content) {
  if (content === null || typeof content !== "object" || Array.isArray(content)) {
    throw new TocsinError("invalid", "a publication is an object of attributes and their values");
  }
  const given = Object.entries(content).filter(([, value]) => value !== null && value !== undefined);
  if (given.length > MOST_ATTRIBUTES) {
    throw new TocsinError("invalid", `a publication with ${given.length} attributes; at most ${MOST_ATTRIBUTES} are taken`);
  }
  return `{${given.map(([name, value]) => `${encodeName(name)}:${encodeValue(value, name)}`).join(",")}}`;
}

function encodeName(name) {
  if (!NAME.test(name) || [...name].length > MOST_NAME) {
    const rule = `names have 1 to ${MOST_NAME} printable characters, none of them a backtick`;
    throw new TocsinError("invalid", `${JSON.stringify(name.slice(0, 40))} is no attribute: ${rule}`);
  }
  return JSON.stringify(name);
}

function encodeValue(value, name) {
  const wrong = (what) => new TocsinError("invalid", `attribute ${JSON.stringify(name)} ${what}`);
  switch (typeof value) {
    case "boolean": return String(value);
    case "number":
      if (!Number.isFinite(value)) throw wrong(`is ${value}; numbers are finite`);
      // Digits alone would be taken for a whole number that cannot be told from its neighbours.
      return Math.abs(value) > 2 ** 53 ? value.toExponential() : JSON.stringify(value);
    case "string":
      if ([...value].length > MOST_TEXT) throw wrong(`has more than ${MOST_TEXT} characters`);
      if (!value.isWellFormed()) throw wrong("has half a surrogate pair in it, which is no character");
      return JSON.stringify(value);
  }
  throw wrong(`is a ${typeof value}; values are strings, numbers, true or false`);
}
