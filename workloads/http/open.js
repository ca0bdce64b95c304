// RATE requests of URL a second for SECONDS, each sent when it is due, whether or not those before are answered (an open load). One
// that is due when all users wait for answers is not sent, and has failed. With READY the exit status says whether it was answered.
import http from 'k6/http';
import { check } from 'k6';
import encoding from 'k6/encoding';
import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';

const request = JSON.parse(open('./request.json')); // method, headers, and the body in base64
const body = request.body ? encoding.b64decode(request.body) : null;
const rate = +__ENV.RATE;
const seconds = +__ENV.SECONDS;
// Making users takes a second of CPU time for a thousand. These wait for half a second of answers, and longer at low rates.
const users = Math.min(Math.max(Math.min(2 * rate, 400), Math.ceil(rate / 2), 20), 2000);

export const options = {
  scenarios: {
    open: { executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration: `${seconds}s`, preAllocatedVUs: users, gracefulStop: '1m' },
  },
  summaryTrendStats: ['avg', 'min', 'max', 'p(50)', 'p(95)', 'p(99)'],
  thresholds: __ENV.READY ? { right: ['count>0'] } : {},
};

const response = new Trend('response'); // ms, of right answers
const clock = new Trend('clock'); // ms since the first request was due, of right answers' ends
const right = new Counter('right');

export default function () {
  const answer = http.request(request.method, __ENV.URL, body, { timeout: '1m', redirects: 0, headers: request.headers });
  const cause = answer.error || (answer.status >= 400 ? `status ${answer.status}, one below 400 was expected` : '');
  if (cause) {
    check(null, { [cause]: () => true }); // k6 counts checks by name, so the summary has every cause
    return;
  }
  // k6's duration begins when there is a connection. A user's begins before, and `blocked` is what is missing.
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
