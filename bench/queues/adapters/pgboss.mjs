// pg-boss: fetch and complete by hand in batches of 1,000, which measured best; no supervisor, no schedules.
// Called like child.py: pgboss.mjs ACTION COUNT, in a folder that has its node_modules.

import { createRequire } from "node:module";

const PgBoss = createRequire(`${process.cwd()}/`)("pg-boss");
const BATCH = 1000;
const [action, count] = [process.argv[2], Number(process.argv[3])];

async function put(boss) {
  const jobs = Array.from({ length: count }, (_, n) => ({ name: "noop", data: { n } }));
  for (let start = 0; start < count; start += BATCH) await boss.insert(jobs.slice(start, start + BATCH));
}

async function drain(boss) {
  let ran = 0;
  for (;;) {
    const jobs = await boss.fetch("noop", { batchSize: BATCH });
    if (!jobs.length) return ran;
    for (const job of jobs) ran += await handle(job.data);
    await boss.complete("noop", jobs.map((job) => job.id));
  }
}

async function handle(_payload) {
  return 1;
}

// Where the server is and who asks come as PGHOST, PGPORT, PGUSER and PGDATABASE, which its driver reads.
const boss = new PgBoss({ supervise: false, schedule: false, max: 2 });
await boss.start();
if (action === "prepare") await boss.createQueue("noop");
const started = performance.now();
const worked = process.cpuUsage();
if (action === "put") await put(boss);
const ran = action === "drain" || action === "once" ? await drain(boss) : 0;
const seconds = (performance.now() - started) / 1000;
const used = process.cpuUsage(worked);
const cpu = (used.user + used.system) / 1e6;
await boss.stop({ graceful: false, wait: false });
console.log(JSON.stringify({ seconds, cpu, ran, peak_kib: process.resourceUsage().maxRSS }));
process.exit(0);
