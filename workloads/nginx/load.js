// Requests URL. In a closed load, USERS concurrent users send REQUESTS requests in total, each after the previous answer. In an open load, the load sends
// RATE requests a second for SECONDS, each when it is due. A request that is due while all users wait for answers is not sent, and fails. With
// READY the exit status says whether the server answered.
import http from 'k6/http';
import { check } from 'k6';
import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';

const env = (name) => +(__ENV[name] || 0);
const open = env('RATE') > 0;
const users = open ? Math.min(Math.max(2 * env('RATE'), 20), 2000) : env('USERS');

export const options = {
  scenarios: {
    load: open
      ? { executor: 'constant-arrival-rate', rate: env('RATE'), timeUnit: '1s', duration: `${env('SECONDS')}s`, preAllocatedVUs: users, gracefulStop: '1m' }
      : { executor: 'shared-iterations', vus: users, iterations: Math.max(env('REQUESTS'), users), maxDuration: '24h' },
  },
  summaryTrendStats: ['avg', 'min', 'max', 'p(50)', 'p(95)', 'p(99)'],
  thresholds: __ENV.READY ? { right: ['count>0'] } : {},
};

const response = new Trend('response'); // ms, of right answers
const clock = new Trend('clock'); // ms since the first request was due, of the ends of right answers
const right = new Counter('right');

export default function () {
  const answer = http.get(__ENV.URL, { timeout: '1m', redirects: 0, responseType: 'binary' });
  let cause = answer.error;
  if (!cause && answer.status !== 200) cause = `status ${answer.status}, not 200`;
  if (!cause && (!answer.body || answer.body.byteLength !== env('BYTES'))) cause = 'another file, or a part of it';
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
      requests_per_second: ((all - failed) * 1000) / Math.max(value('clock', 'max'), env('SECONDS') * 1000, 1),
    }) + '\n';
  }
  return out;
}
