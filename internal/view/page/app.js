'use strict';
(() => {
  const body = document.body, base = body.dataset.base || '', said = document.getElementById('said'); // the list of teams has no base
  if (!body.dataset.kind) return;
  const say = (text) => { said.textContent = text; };
  const line = document.getElementById('line');
  const main = document.getElementById('main');
  let stale = false, loading = false, missed = false, absent = false, armed = null, held = false;

  // What a person is pressing, is typing, has marked or is about to confirm is not taken from under them.
  const busy = () => document.querySelector('dialog[open]') || armed || held || [...main.querySelectorAll('input')].some((e) => e.value !== e.defaultValue) || (document.getSelection() && String(document.getSelection()) !== '');

  async function load() {
    if (body.dataset.kind === 'screen') return;
    if (loading) { missed = true; return; } // the answer that is awaited may be of before this change
    if (busy()) { stale = true; return; }
    stale = false; loading = true;
    try {
      const res = await fetch(location.href, { headers: { 'X-Teamctl-Part': '1' } });
      const text = await res.text();
      if (res.status === 401) { location.reload(); return; }
      if (res.status >= 500) stale = true;
      if (res.status === 404 && !since && !absent) {
        absent = true;
        main.classList.add('lost');
        say('As of ' + new Date().toLocaleTimeString() + ': it does not exist any more.');
      }
      if (res.ok && absent) { absent = false; main.classList.remove('lost'); say(''); }
      if (res.ok && !busy()) {
        const open = [...main.querySelectorAll('details')].map((d) => d.open);
        const focused = main.contains(document.activeElement) ? key(document.activeElement) : null;
        main.innerHTML = text; // a document of this server, in which every text is escaped
        main.querySelectorAll('details').forEach((d, i) => { if (i < open.length) d.open = open[i]; });
        if (focused) [...main.querySelectorAll('a,button,input')].find((e) => key(e) === focused)?.focus();
      } else if (res.ok) { stale = true; }
    } catch { stale = true; } finally { loading = false; }
    if (missed) { missed = false; load(); }
  }
  const key = (e) => e.tagName + (e.getAttribute('href') || '') + JSON.stringify(e.dataset);

  // A press begins with one event and ends with another, and clicks only if both are of one button.
  const hold = () => { held = true; };
  const release = () => setTimeout(() => { held = false; if (stale) load(); }, 0); // the click comes first
  document.addEventListener('pointerdown', hold);
  document.addEventListener('keydown', (e) => { if (e.key === ' ') hold(); });
  for (const end of ['pointerup', 'pointercancel', 'keyup']) document.addEventListener(end, release);
  window.addEventListener('blur', release);

  let since = null;
  const lose = (why) => {
    since = since || new Date();
    main.classList.add('lost');
    say(why(since.toLocaleTimeString()));
  };
  let wait = 1000;
  function listen() {
    const events = new EventSource(base + '/events');
    events.addEventListener('change', (e) => {
      const d = JSON.parse(e.data);
      if (since) { say(''); since = null; absent = false; }
      wait = 1000;
      if (!absent) main.classList.remove('lost');
      if (line) document.title = line.textContent = 'teamctl ' + d.line;
      load();
    });
    events.addEventListener('lost', (e) => lose((at) => 'As of ' + at + ': ' + JSON.parse(e.data).why));
    events.onerror = () => {
      if (!main.classList.contains('lost')) { // otherwise the reason is shown
        lose((at) => 'The connection is lost since ' + at + ': what is shown is of then. It is tried again.');
      }
      if (events.readyState === EventSource.CLOSED) setTimeout(refused, wait);
    };
  }
  // A stream is refused after the end of the session, and while the team cannot be read: what is shown stays then.
  async function refused() {
    wait = Math.min(2 * wait, 60000);
    const res = await fetch(base ? base + '/needs' : '/', { headers: { 'X-Teamctl-Part': '1' } }).catch(() => null);
    if (res && res.status === 401) { location.reload(); return; }
    if (res && res.status === 404) lose((at) => 'As of ' + at + ': the team was not found. It is tried again.');
    listen();
  }
  listen();
  setInterval(() => { if (stale && !since) load(); }, 1000); // the stream says when a connection is back

  const screen = document.getElementById('screen');
  if (screen) {
    const frames = new EventSource(base + '/screen/' + encodeURIComponent(body.dataset.screen) + '/events');
    frames.addEventListener('screen', (e) => {
      const all = document.createDocumentFragment();
      JSON.parse(e.data).lines.forEach((parts, line) => {
        if (line > 0) all.append('\n');
        for (let i = 0; i < parts.length; i += 2) {
          const part = document.createElement('span');
          part.className = parts[i]; part.textContent = parts[i + 1];
          all.append(part);
        }
      });
      screen.replaceChildren(all);
    });
    frames.addEventListener('lost', (e) => { say(JSON.parse(e.data).why); frames.close(); });
  }

  async function post(deed, quiet) {
    try {
      const res = await fetch(base + '/do', { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Teamctl-Csrf': body.dataset.csrf }, body: JSON.stringify(deed) });
      const out = await res.json().catch(() => ({ error: 'status ' + res.status }));
      if (!quiet || out.error || !out.seen) say(out.said || [out.error, out.hint].filter(Boolean).join(': '));
      return out;
    } catch (err) {
      say('Nothing is known of what became of it: ' + err.message);
      return { error: err.message };
    }
  }

  // A dialog asks for the text of a deed. What is typed stays in this tab until it is sent; a
  // comment is a draft of the team from the first pause in typing.
  const textOf = (title) => 'draft ' + title;
  let asked = Promise.resolve();
  function ask(title, deed, now, lines) { // one after the other: a dialog that is closing has not said yet what became of it
    const next = asked.then(() => new Promise((done) => {
      const box = document.getElementById('ask'), text = document.getElementById('text'), last = document.getElementById('last');
      const draft = /comment/.test(deed.action), kept = textOf(title), edit = deed.approval > 0 ? 'edit-plan-comment' : 'edit-comment';
      let saved = now || '', saving = Promise.resolve(true), pause = 0;
      const save = () => {
        clearTimeout(pause);
        saving = saving.then(async () => {
          const value = text.value;
          if (value === saved || (!deed.comment && value.trim() === '')) return true;
          const out = await post(Object.assign({}, deed, { action: deed.comment ? edit : deed.action, text: value }));
          if (out.error) return false;
          saved = value; deed.comment = value.trim() === '' ? '' : out.comment;
          if (sessionStorage.getItem(kept) === value) sessionStorage.removeItem(kept);
          return true;
        });
        return saving;
      };
      document.getElementById('what').textContent = title;
      document.getElementById('send').textContent = draft ? 'Keep the draft' : 'Send';
      document.getElementById('range').hidden = !lines;
      last.min = last.value = lines || '';
      last.onchange = () => {
        deed.lines = Number(last.value) > lines ? lines + '-' + last.value : String(lines);
        saving = saving.then(async () => { // a draft keeps its lines: another takes its place
          if (deed.comment && !(await post(Object.assign({}, deed, { action: edit, text: '' }))).error) deed.comment = saved = '';
          return true;
        });
        save();
      };
      text.value = sessionStorage.getItem(kept) || now || '';
      text.oninput = () => {
        sessionStorage.setItem(kept, text.value);
        clearTimeout(pause);
        if (draft) pause = setTimeout(save, 800);
      };
      const leaves = (e) => { if (text.value !== saved) e.preventDefault(); }; // the browser asks
      window.addEventListener('beforeunload', leaves);
      box.returnValue = 'cancel';
      box.addEventListener('close', async () => {
        window.removeEventListener('beforeunload', leaves);
        clearTimeout(pause);
        if (draft) {
          if (box.returnValue === 'send') await save();
          await saving;
          done(null);
          return;
        }
        done(box.returnValue === 'send' && text.value.trim() !== '' ? text.value : null);
      }, { once: true });
      box.showModal();
      text.focus();
    }));
    asked = next;
    return next;
  }

  // A dialog shows what a deed would do, and does it after a tap that is not the one that opened it.
  const shown = (title, text) => new Promise((done) => {
    const box = document.getElementById('would'), yes = document.getElementById('do-it'), since = Date.now();
    document.getElementById('does').textContent = title;
    document.getElementById('what-it-does').textContent = text;
    yes.textContent = title;
    yes.onclick = () => { if (Date.now() - since >= 400) box.close('yes'); };
    box.returnValue = 'cancel';
    box.addEventListener('close', () => done(box.returnValue === 'yes'), { once: true });
    box.showModal();
    document.getElementById('what-it-does').focus();
  });

  document.addEventListener('click', async (e) => {
    const b = e.target.closest('button[data-action],button.ln');
    if (armed && armed !== b) disarm();
    if (!b || b.disabled) return;
    const d = b.dataset;
    if (d.line) {
      const of = b.closest('.diff').dataset;
      if (of.approval) {
        await ask('comment on line ' + d.line + ' of plan ' + of.approval + ' of ' + of.member,
          { action: 'comment-plan', member: of.member, approval: Number(of.approval), lines: d.line, comment: '', text: '' }, '', Number(d.line));
        load();
        return;
      }
      await ask('comment on ' + (d.old ? 'removed line ' : '') + of.path + ':' + d.line + ' of ' + of.member,
        { action: 'comment', member: of.member, path: of.path, lines: d.line, old: !!d.old, comment: '', text: '' }, '', Number(d.line));
      load();
      return;
    }
    const deed = { action: d.action, member: d.member, task: d.task, message: d.message, approval: Number(d.approval), seen: d.seen,
      path: d.path || '', lines: d.lines || '', comment: d.comment || '', text: '', again: false };
    if (d.twice) {
      if (armed !== b) { arm(b); return; }
      if (Date.now() - Number(d.armed) < 400) return; // no hand is that fast
      deed.again = true;
      disarm();
    }
    let kept = '';
    if (d.asks) {
      const on = [d.approval > 0 ? d.approval : '', d.task || d.member, d.comment || (d.approval > 0 ? '' : d.path)].filter(Boolean).join(' ');
      const title = b.textContent + ' ' + on + ': ' + d.asks, text = await ask(title, deed, d.text);
      if (text === null) { load(); return; }
      deed.text = text; kept = textOf(title);
    }
    b.disabled = true;
    if (d.preview) {
      const out = await post(Object.assign({}, deed, { preview: true }), true);
      if (out.error || !out.seen) deed.seen = '';
      else if (await shown(b.textContent, out.said)) deed.seen = out.seen;
      else say('Nothing was done.');
      if (deed.seen) say('…');
    }
    if (!d.preview || deed.seen) {
      const out = await post(deed);
      if (kept && !out.error) sessionStorage.removeItem(kept);
    }
    b.disabled = false;
    load();
  });
  function arm(b) {
    armed = b; b.dataset.armed = Date.now(); b.dataset.title = b.textContent;
    b.textContent = 'Tap again to ' + b.textContent; b.classList.add('again');
    setTimeout(() => { if (armed === b) disarm(); }, 8000);
  }
  function disarm() {
    armed.textContent = armed.dataset.title; armed.classList.remove('again');
    delete armed.dataset.armed; delete armed.dataset.title; armed = null;
    if (stale) load();
  }
})();
