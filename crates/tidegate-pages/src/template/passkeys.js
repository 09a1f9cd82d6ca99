// Passes the challenges of a page to the browser's functions for passkeys (WebAuthn), and submits
// the forms with their results. In a browser without passkeys the buttons stay hidden, and the page
// for adding a passkey shows a message.
"use strict";

for (const box of document.querySelectorAll("[data-passkey]")) {
  const api = window.PublicKeyCredential;
  const creates = box.dataset.passkey === "create";
  const parse = api && (creates ? api.parseCreationOptionsFromJSON : api.parseRequestOptionsFromJSON);
  if (!parse) {
    for (const missing of document.querySelectorAll("[data-no-passkeys]")) missing.hidden = false;
    continue;
  }
  const form = box.closest("form");
  const failed = box.querySelector("[role=alert]");
  box.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    failed.hidden = true;
    try {
      const publicKey = parse.call(api, JSON.parse(box.dataset.options));
      const credential = creates
        ? await navigator.credentials.create({ publicKey })
        : await navigator.credentials.get({ publicKey });
      form.elements.credential.value = JSON.stringify(credential.toJSON());
      form.submit();
    } catch {
      failed.hidden = false;
    }
  });
}
