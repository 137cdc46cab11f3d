import { workerData } from 'node:worker_threads'
import { type CopyTask, fillCopy } from './copy.ts'

// The thread that `copyMirror` starts.

fillCopy(workerData as CopyTask)
