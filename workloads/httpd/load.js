// Requests FILES files f0000, f0001, … of ADDRESS:PORT in order, one after another, PASSES times. Each must be the right, complete file.
// With READY the exit status says whether the server sent one.
import http from 'k6/http';
import { check } from 'k6';
import exec from 'k6/execution';
import { Counter, Trend } from 'k6/metrics';

const files = +__ENV.FILES;
const passes = +__ENV.PASSES;
const lines = 65536; // in a file, 16 bytes each

export const options = {
  scenarios: { one: { executor: 'per-vu-iterations', vus: 1, iterations: files * passes, maxDuration: '24h' } },
  summaryTrendStats: ['avg', 'max', 'p(50)', 'p(99)'],
  thresholds: __ENV.READY ? { right: ['count>0'] } : {},
};

const response = new Trend('response'); // ms, of right answers
const clock = new Trend('clock'); // ms since the start, of the ends of right answers
const right = new Counter('right');

const line = (n) => `${String(n).padStart(15, '0')}\n`;

export default function () {
  const n = exec.vu.iterationInScenario % files;
  const answer = http.get(`http://${__ENV.ADDRESS}:${__ENV.PORT}/f${String(n).padStart(4, '0')}`, { timeout: '1m', redirects: 0 });
  let cause = answer.error;
  if (!cause && answer.status !== 200) cause = `status ${answer.status}: must be 200`;
  const body = answer.body || '';
  if (!cause && (body.length !== lines * 16 || !body.startsWith(line(n * lines)) || !body.endsWith(line((n + 1) * lines - 1)))) {
    cause = 'another file, or a part of it';
  }
  if (cause) {
    check(null, { [cause]: () => true }); // k6 counts checks by name, so the summary has every cause
    return;
  }
  right.add(1);
  response.add(answer.timings.blocked + answer.timings.duration);
  clock.add(Date.now() - exec.scenario.startTime);
}

export function handleSummary(data) {
  const value = (metric, key) => (data.metrics[metric] ? data.metrics[metric].values[key] : 0);
  const failed = files * passes - value('right', 'count');
  const out = {};
  if (failed > 0) {
    const causes = data.root_group.checks.sort((a, b) => b.passes - a.passes);
    out.stderr = `${failed} of ${files * passes} files were not served: ${causes.length > 0 ? causes[0].name : 'not asked for'}\n`;
  }
  out.stdout = JSON.stringify({
    mean: value('response', 'avg') / 1000,
    p50: value('response', 'p(50)') / 1000,
    p99: value('response', 'p(99)') / 1000,
    errors: failed,
    requests_per_second: (value('right', 'count') * 1000) / Math.max(value('clock', 'max'), 1),
  }) + '\n';
  return out;
}
