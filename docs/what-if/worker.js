// Answers requests one after the other, beside the page.

import { load } from "./engine.js";

const answer = load(new URL("lab.wasm", import.meta.url));

addEventListener("message", async ({ data: { id, request } }) => {
  const begin = performance.now();
  let said;
  try {
    said = (await answer)(request);
  } catch (error) {
    said = { error: `internal error: ${error.message}` };
  }
  postMessage({ id, answer: said, took_ms: performance.now() - begin });
});
