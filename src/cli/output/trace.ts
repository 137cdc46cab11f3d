import type { Logger } from 'pino'
import type { ApiOptions } from '../../api/client.ts'

/** With `--log-level trace`: a line for each answer. Filters may hold what is personal, so only the path is shown. */
export function tracing(logger: Logger, onAnswer: ApiOptions['onAnswer']): ApiOptions['onAnswer'] {
  if (!logger.isLevelEnabled('trace')) return onAnswer
  return (answer) => {
    onAnswer?.(answer)
    const { job, page, status, ms, announced } = answer
    const { organization, collection } = job
    logger.trace(
      {
        event: status === null ? 'request_lost' : 'request_answered',
        organization: organization.name,
        collection: collection.name,
        method: 'GET',
        path: collection.path,
        page,
        status,
        duration_ms: ms,
        rate_limit: announced?.limit,
        rate_limit_remaining: announced?.remaining,
        retry_after_ms: announced?.retryAfterMs,
      },
      status === null ? 'no answer came' : 'request answered',
    )
  }
}
