// The lab, compiled to WebAssembly. Requests and answers are JSON (crates/web/src/request.rs).

/** Loads the module: returns a function that answers requests. */
export async function load(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  const { instance } = await WebAssembly.instantiate(await response.arrayBuffer());
  const lab = instance.exports;
  return (request) => {
    const text = new TextEncoder().encode(JSON.stringify(request));
    // The buffer can move the memory, so that it is looked at after that.
    const at = lab.request_buffer(text.length);
    new Uint8Array(lab.memory.buffer, at, text.length).set(text);
    const answer = lab.answer_request();
    const bytes = new Uint8Array(lab.memory.buffer, answer, lab.answer_length());
    return JSON.parse(new TextDecoder().decode(bytes));
  };
}
