import { parentPort, workerData } from 'node:worker_threads'
import { type CopyTask, tryToFill } from './copy.ts'

// The thread that `copyMirror` starts.

parentPort?.postMessage(tryToFill(workerData as CopyTask), [])
