// A person with a browser that has no JavaScript: keeps the cookie, fills in forms, posts them.
const entities = { '&amp;': '&', '&quot;': '"', '&lt;': '<', '&gt;': '>' };
const plain = (text) => text.replace(/&(amp|quot|lt|gt);/g, (entity) => entities[entity]);

export class Person {
  #cookie = '';

  constructor(fields) {
    this.fields = fields;
  }

  async #fetch(url, options = {}) {
    const headers = { ...options.headers, cookie: this.#cookie };
    const answer = await fetch(url, { ...options, headers, redirect: 'manual' });
    const cookie = answer.headers.get('set-cookie');
    if (cookie) this.#cookie = cookie.split(';')[0];
    return answer;
  }

  /** Walks through our pages until one leads elsewhere or has no form; returns where it ended. */
  async walk(start, home) {
    let url = new URL(start);
    let answer = await this.#fetch(url);
    for (let steps = 0; steps < 12; steps += 1) {
      const location = answer.headers.get('location');
      if (location) {
        url = new URL(location, url);
        if (url.origin !== home) return { url };
        answer = await this.#fetch(url);
        continue;
      }
      const text = await answer.text();
      const form = text.match(/<form [^>]*>.*?<\/form>/s)?.[0];
      if (!form || !answer.ok) return { url, status: answer.status, text };
      url = new URL(plain(form.match(/action="([^"]*)"/)[1]), url);
      answer = await this.#fetch(url, { method: 'POST', body: this.#filled(form) });
    }
    throw new Error('the pages have no end');
  }

  #filled(form) {
    const body = new URLSearchParams();
    for (const [input] of form.matchAll(/<input [^>]*>/g)) {
      const value = (name) => plain(input.match(new RegExp(` ${name}="([^"]*)"`))?.[1] ?? '');
      body.set(value('name'), this.fields[value('name')] ?? value('value'));
    }
    if (form.includes('name="decision"')) body.set('decision', this.fields.decision ?? 'allow');
    return body;
  }
}
