import { Worker } from 'node:worker_threads'

// The process that run-reading.ts starts. Its main thread only listens, since a thread inside SQLite cannot,
// and the process must end at once when its parent does. Plain JavaScript, since reading TypeScript takes each thread 60 ms to begin with.
// Its argument is the thread's program: reading-thread, as TypeScript in a checkout and as JavaScript in a package.

function listen() {
  // A diagnostic report of Node would hold the environment, and so the tokens.
  if (process.report) process.report.excludeEnv = true
  process.on('disconnect', die)
  if (!process.connected) die()
  // A terminal signals this process too; its parent decides.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
  process.once('message', (task) => {
    // Rows are short-lived: a large space for new objects would only cost memory.
    const thread = new Worker(new URL(String(process.argv[2])), {
      workerData: task,
      resourceLimits: { maxYoungGenerationSizeMb: 16 },
    })
    thread.on('message', send)
    thread.on('error', (error) => send({ kind: 'failed', of: 'other', message: String(error) }))
  })
}

function die() {
  process.kill(process.pid, 'SIGKILL')
}

/** @param {import('./read.ts').ReadingEnd} end */
function send(end) {
  process.send?.(end, () => process.exit(0))
}

listen()
