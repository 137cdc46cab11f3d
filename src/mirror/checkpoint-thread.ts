import { workerData } from 'node:worker_threads'
import { emptyLog } from './database.ts'

// A thread of its own: see checkpointer.ts.

emptyLog(workerData as string)
