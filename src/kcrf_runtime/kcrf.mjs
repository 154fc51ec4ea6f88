/* Labels sequences in browsers and in Node, by kcrf.wasm: the C library of this folder (make wasm).

     import { load } from "./kcrf.mjs";
     const bytes = async (name) => (await fetch(name)).arrayBuffer();
     const tagger = await load(await bytes("kcrf.wasm"), await bytes("model.kcrf"));
     tagger.set([["the", "DT"], ["cat", "NN"]]);   // two positions, two columns each
     tagger.labels();                              // ["B-NP", "I-NP"]

   A tagger has a memory of its own and is freed with it; a WebAssembly.Module instead of the bytes of kcrf.wasm is
   compiled once for many taggers. Errors are of class Error, with a message for users. */

const encoder = new TextEncoder(), decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export async function load(wasm, model) {
  const module = wasm instanceof WebAssembly.Module ? wasm : await WebAssembly.compile(wasm);
  const imports = {}; // files and the like, which the library asks for and does not use: an error code
  for (const own of WebAssembly.Module.imports(module)) (imports[own.module] ??= {})[own.name] = () => 52;
  const library = (await WebAssembly.instantiate(module, imports)).exports;
  library._initialize();
  return new Tagger(library, ArrayBuffer.isView(model) ? model : new Uint8Array(model));
}

class Tagger {
  #library; #tagger; #positions = -1; #texts = 0; #room = 0;

  constructor(library, model) {
    this.#library = library;
    const data = this.#allocate(model.length), error = this.#allocate(256);
    this.#bytes().set(model, data);
    const opened = library.kcrf_open_memory(data, model.length, error);
    if (!opened) throw new Error(this.#message(error));
    const names = (count, name) => Array.from({ length: count }, (_, k) => (name(error, opened, k), this.#text(error)));
    this.labelNames = names(library.kcrf_label_count(opened), library.kcrf_label_name);
    this.columnNames = names(library.kcrf_column_count(opened), library.kcrf_column_name);
    this.columnsUsed = this.columnNames.map((_, k) => library.kcrf_column_used(opened, k) !== 0);
    this.takesAttributes = library.kcrf_takes_attributes(opened) !== 0;
    this.#tagger = library.kcrf_tagger_new(opened);
    if (!this.#tagger) throw new Error("out of memory");
  }

  /* Set a sequence: rows of columns, or of attributes, each a name or [name, value]. */
  set(rows) {
    const { kcrf_set_columns, kcrf_set_attributes, free } = this.#library, width = this.columnNames.length;
    const pairs = this.takesAttributes, item = pairs ? 16 : 8; // bytes of kcrf_attribute, kcrf_text
    this.#positions = -1; // the sequence of before is not the one that could not be set
    if (!Array.isArray(rows)) throw new Error("expected an array of positions");
    let length = 0, count = 0;
    rows.forEach((row, t) => {
      if (!Array.isArray(row) || (!pairs && row.length !== width))
        throw new Error(`position ${t + 1}: expected an array of ${pairs ? "attributes" : `${width} columns (${this.columnNames.join(", ")})`}`);
      for (const one of row) {
        const text = pairs && Array.isArray(one) ? one[0] : one;
        if (typeof text !== "string") throw new Error(`position ${t + 1}: a text was expected, not ${text}`);
        length += text.length;
      }
      count += row.length;
    });
    const size = count * item + rows.length * 4 + 3 * length; // UTF-8 has at most three bytes for a unit of UTF-16
    if (size > this.#room) {
      free(this.#texts);
      this.#room = 0;
      this.#texts = this.#allocate(2 * size);
      this.#room = 2 * size;
    }
    const bytes = this.#bytes(), view = new DataView(bytes.buffer), ends = this.#texts + count * item;
    let here = this.#texts, at = ends + rows.length * 4;
    rows.forEach((row, t) => {
      for (const one of row) {
        const text = pairs && Array.isArray(one) ? one[0] : one, begin = at;
        let k = 0, unit;
        for (; k < text.length && (unit = text.charCodeAt(k)) < 128; k++) bytes[at++] = unit;
        if (k < text.length) at += encoder.encodeInto(text.slice(k), bytes.subarray(at)).written;
        view.setUint32(here, begin, true);
        view.setUint32(here + 4, at - begin, true);
        if (pairs) view.setFloat64(here + 8, text === one ? 1 : one[1], true);
        here += item;
      }
      view.setUint32(ends + 4 * t, (here - this.#texts) / item, true);
    });
    this.#check((pairs ? kcrf_set_attributes(this.#tagger, this.#texts, ends, rows.length)
                       : kcrf_set_columns(this.#tagger, this.#texts, rows.length)) === 0);
    this.#positions = rows.length;
  }

  /* The best labels by the model's decoder. */
  labels() { return this.#names(this.#library.kcrf_labels(this.#ready())); }

  /* The most probable labelling. */
  viterbi() { return this.#names(this.#library.kcrf_viterbi(this.#ready())); }

  /* p(label | sequence): for each position an array in the order of `labelNames`. */
  marginals() {
    const width = this.labelNames.length, found = this.#check(this.#library.kcrf_marginals(this.#ready()));
    const all = new Float64Array(this.#bytes().buffer, found, this.#positions * width).slice();
    return Array.from({ length: this.#positions }, (_, t) => all.subarray(t * width, (t + 1) * width));
  }

  #ready() { // the tagger, with a sequence
    if (this.#positions < 0) throw new Error("no sequence is set: there was none yet, or the last one was refused");
    return this.#tagger;
  }

  #names(found) {
    const numbers = new Int32Array(this.#bytes().buffer, this.#check(found), this.#positions);
    return Array.from(numbers, (label) => this.labelNames[label]);
  }

  #check(good) {
    if (!good) throw new Error(this.#message(this.#library.kcrf_tagger_error(this.#tagger)));
    return good;
  }

  #allocate(size) {
    const place = this.#library.malloc(size + 1);
    if (!place) throw new Error("out of memory");
    return place;
  }

  #bytes() { return new Uint8Array(this.#library.memory.buffer); } // a new buffer after each growth

  #text(place) { // of a kcrf_text
    const bytes = this.#bytes(), [begin, size] = new Uint32Array(bytes.buffer, place, 2);
    return decoder.decode(bytes.subarray(begin, begin + size));
  }

  #message(error) { // of a kcrf_error
    const text = this.#bytes().subarray(error + 4, error + 244);
    return decoder.decode(text.subarray(0, text.indexOf(0)));
  }
}
