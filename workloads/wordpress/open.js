// Requests RATE pages (only the documents) of the recording a second for SECONDS, in their order. Each request is sent when it is due, whether or not
// earlier ones are answered (an open load). A request that is due while all users wait for answers is not sent, and fails.
import http from 'k6/http';
import { check } from 'k6';
import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';

const rate = +__ENV.RATE;
const seconds = +__ENV.SECONDS;
const pages = JSON.parse(open('./visit.json')).slice(0, +__ENV.PAGES).filter((step) => step.path); // no comments
const users = Math.min(Math.max(2 * rate, 20), 2000);

export const options = {
  scenarios: {
    open: { executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration: `${seconds}s`, preAllocatedVUs: users, gracefulStop: '1m' },
  },
  summaryTrendStats: ['avg', 'min', 'max', 'p(50)', 'p(95)', 'p(99)'],
};

const response = new Trend('response'); // ms, of right answers
const clock = new Trend('clock'); // ms since the first request was due, of the ends of right answers
const right = new Counter('right');

export default function () {
  const page = pages[exec.scenario.iterationInTest % pages.length];
  const answer = http.get(`http://${__ENV.ADDRESS}:${__ENV.PORT}${page.path}`, { timeout: '1m', redirects: 0 });
  const cause = answer.error || (answer.status !== 200 ? `${page.path}: status ${answer.status}: must be 200` : !answer.body.includes(page.shows) ? `${page.path}: the answer is another page` : '');
  if (cause) {
    check(null, { [cause]: () => true }); // k6 counts checks by name, so the summary has every cause
    return;
  }
  // k6's duration begins with the connection. The user's time begins earlier, and `blocked` is the difference.
  right.add(1);
  response.add(answer.timings.blocked + answer.timings.duration);
  clock.add(Date.now() - exec.scenario.startTime);
}

export function handleSummary(data) {
  const value = (metric, key) => (data.metrics[metric] ? data.metrics[metric].values[key] : 0);
  const all = value('iterations', 'count') + value('dropped_iterations', 'count');
  const failed = all - value('right', 'count');
  const out = {};
  if (failed > 0) {
    const causes = data.root_group.checks.sort((a, b) => b.passes - a.passes);
    out.stderr = `${failed} of ${all} requests failed: ${causes.length > 0 ? causes[0].name : `not sent, as ${users} users waited for answers`}\n`;
  }
  if (all > failed) {
    out.stdout = JSON.stringify({
      mean: value('response', 'avg') / 1000,
      p50: value('response', 'p(50)') / 1000,
      p95: value('response', 'p(95)') / 1000,
      p99: value('response', 'p(99)') / 1000,
      errors: failed,
      requests: all,
      requests_per_second: ((all - failed) * 1000) / Math.max(value('clock', 'max'), seconds * 1000),
    }) + '\n';
  }
  return out;
}
