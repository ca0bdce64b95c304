// Every virtual user makes the first PAGES steps of the recorded visit. All users begin at the same time.
import exec from 'k6/execution';
import http from 'k6/http';
import { check, sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';

const site = `http://${__ENV.ADDRESS}:${__ENV.PORT}`;
const visit = JSON.parse(open(__ENV.RECORDING)).slice(0, +__ENV.PAGES);
const thinks = __ENV.THINK === 'recorded';

export const options = {
  scenarios: {
    users: { executor: 'per-vu-iterations', vus: +__ENV.USERS, iterations: 1, maxDuration: '24h' },
  },
  summaryTrendStats: ['avg', 'min', 'max', 'p(50)', 'p(95)', 'p(99)'],
};

const response = new Trend('response'); // ms, of right pages
const whole = new Trend('whole'); // ms, of all pages of a user without the times to think, if all were right
const clock = new Trend('clock'); // ms since the load began, of the beginnings and ends of all requests
const right = new Counter('right'); // requests with a right answer

const now = () => exec.instance.currentTestRunDuration; // ms
const asked = { timeout: '1h', redirects: 0 };
const unread = Object.assign({ responseType: 'none' }, asked);

// A page is a document. The answer to a comment names the page that shows it.
const requestsOf = (step) => 1 + (step.comment ? 1 : 0) + step.with.length;

// Returns what is wrong with a document; '' if nothing is.
function wrong(answer, step, path) {
  if (answer.error) return answer.error;
  if (answer.status !== 200) return `${path}: status ${answer.status}: must be 200`;
  if (!answer.body.includes(step.shows)) return `${path} is answered with another page`;
  if (!answer.body.trimEnd().endsWith('</html>')) return `${path} is cut off`;
  return '';
}

// Returns the time of an answer, from the user's request for a connection; -1 if the answer is wrong. k6's duration begins with the
// connection, and `blocked` is the time before it.
function took(answer, cause) {
  if (cause) {
    check(null, { [cause]: () => true }); // k6 counts checks by name, so the summary has every cause
    return -1;
  }
  right.add(1);
  return answer.timings.blocked + answer.timings.duration;
}

// Sends the step's comment. Returns the page that shows it, and the time; the page is '' if the comment was refused.
function comment(step) {
  const answer = http.post(`${site}/wp-comments-post.php`, {
    comment: `Visitor ${__VU} read this at ${Date.now()}, and liked it.`,
    author: `Visitor ${__VU}`, email: `visitor${__VU}@example.org`, url: '', comment_post_ID: `${step.post}`, comment_parent: '0',
  }, asked);
  const to = (answer.headers.Location || '').replace(site, '').replace(/#.*/, '');
  const held = answer.status === 302 && to.startsWith(step.comment) && to.includes('unapproved=');
  const ms = took(answer, answer.error || (held ? '' : `a comment on ${step.comment}: status ${answer.status}: must be 302 to the page`));
  return { ms, to: held ? to : '' };
}

export default function () {
  let visited = 0;
  for (const [i, step] of visit.entries()) {
    let ms = 0, path = step.path;
    clock.add(now());
    if (step.comment) {
      const sent = comment(step);
      ms = sent.ms;
      path = sent.to;
    }
    if (path) {
      const answer = http.get(site + path, asked);
      const its = took(answer, wrong(answer, step, path.replace(/\?unapproved.*/, '')));
      ms = its < 0 ? -1 : ms + its;
    }
    if (step.with.length > 0) {
      // Six at a time, as in browsers (k6's batchPerHost).
      const begun = now();
      const answers = http.batch(step.with.map((of) => ['GET', site + of, null, unread]));
      const all = now() - begun;
      const good = answers.map((a, k) => took(a, a.error || (a.status === 200 ? '' : `${step.with[k]}: status ${a.status}: must be 200`)));
      ms = ms < 0 || good.includes(-1) ? -1 : ms + all;
    }
    clock.add(now());
    if (ms >= 0) response.add(ms);
    visited = ms < 0 || visited < 0 ? -1 : visited + ms;
    if (thinks && i + 1 < visit.length) sleep(step.think);
  }
  if (visited >= 0) whole.add(visited);
}

export function handleSummary(data) {
  const value = (metric, key) => (data.metrics[metric] ? data.metrics[metric].values[key] : 0);
  // Counts all steps, because a user who gave up early has failed, too.
  const all = +__ENV.USERS * visit.reduce((n, step) => n + requestsOf(step), 0);
  const failed = all - value('right', 'count');
  const out = {};
  if (failed > 0) {
    const causes = data.root_group.checks.sort((a, b) => b.passes - a.passes);
    const cause = causes.length > 0 ? causes[0].name : 'never asked, or the answer could not be looked at';
    out.stderr = `${failed} of ${all} requests failed: ${cause}\n`;
  }
  if (data.metrics.response) {
    out.stdout = JSON.stringify({
      mean: value('response', 'avg') / 1000,
      p50: value('response', 'p(50)') / 1000,
      p95: value('response', 'p(95)') / 1000,
      p99: value('response', 'p(99)') / 1000,
      visit: value('whole', 'avg') / 1000,
      errors: failed,
      requests: all,
      requests_per_second: (all * 1000) / (value('clock', 'max') - value('clock', 'min')),
    }) + '\n';
  }
  return out;
}
