-- The columns of views of arrays follow the rules of those of tables. The views are made anew with this step; `wide` of columns of texts is worked out for what is there.
ALTER TABLE sync_view_columns
  ADD COLUMN role text NOT NULL DEFAULT 'value',
  ADD COLUMN wide bigint NOT NULL DEFAULT 0,
  ADD COLUMN first_seen_at timestamptz NOT NULL DEFAULT now(),
  ADD COLUMN last_changed_at timestamptz NOT NULL DEFAULT now();
UPDATE sync_view_columns SET wide = 1 WHERE holds IN ('wide', 'boolean');
UPDATE sync_view_columns
SET first_seen_at = known.first_seen_at, last_changed_at = known.first_seen_at
FROM sync_known_columns AS known
WHERE known.collection = split_part(view, '__', 1) AND known."column" = array_column;
ALTER TABLE sync_view_columns DROP COLUMN holds;
COMMENT ON COLUMN sync_view_columns.role IS 'value, text: beside a column whose type did not fit.';
COMMENT ON COLUMN sync_view_columns.wide IS '1: holds a whole number that REAL would round, or a boolean.';
COMMENT ON COLUMN sync_view_columns.first_seen_at IS 'When its first value came.';
COMMENT ON COLUMN sync_view_columns.last_changed_at IS 'When its type changed last.';
COMMENT ON COLUMN sync_known_columns.wide IS '1: holds a whole number that REAL would round; of TEXT: a text that reads like a list.';
COMMENT ON COLUMN sync_column_counts.collection IS 'See sync_collections; or a view of an array.';
COMMENT ON COLUMN sync_column_counts.misfit IS 'The class of one of these: text, boolean, list, object, fraction, large, fitting (it would fit by now).';

ALTER TABLE sync_column_counts ADD COLUMN objects bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN sync_column_counts.objects IS 'Live rows with an object in place of a value; its fields have columns of their own.';

-- The value of a field of an element as a column of whole numbers holds it; null: it does not fit. PARALLEL UNSAFE: with an EXCEPTION
-- block a function begins a subtransaction, which PostgreSQL 15 and 16 refuse in a parallel plan.
CREATE OR REPLACE FUNCTION json_whole(value json) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS $$
DECLARE
  kind text := json_typeof(value);
  written text := value #>> '{}';
  number double precision;
BEGIN
  IF kind = 'boolean' THEN RETURN (written = 'true')::int; END IF;
  IF kind IS NULL OR kind NOT IN ('number', 'string') THEN RETURN NULL; END IF;
  IF written ~ '^-?(0|[1-9][0-9]*)$' THEN RETURN written::bigint; END IF;
  IF kind = 'string' THEN RETURN NULL; END IF;
  number := written;
  -- Beyond these it may have lost digits.
  IF abs(number) <= 9007199254740991 AND number = trunc(number) THEN RETURN number::bigint; END IF;
  RETURN NULL;
EXCEPTION WHEN data_exception THEN
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION json_whole IS 'The value as bigint; null where it does not fit.';

-- The same for a column of fractions.
CREATE OR REPLACE FUNCTION json_real(value json) RETURNS double precision LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS $$
DECLARE
  kind text := json_typeof(value);
  written text := value #>> '{}';
  number double precision;
BEGIN
  IF kind IS NULL OR kind NOT IN ('number', 'string') THEN RETURN NULL; END IF;
  IF written ~ '^-?(0|[1-9][0-9]*)$' THEN
    number := written::bigint;
    IF number::bigint = written::bigint THEN RETURN number + 0.0::double precision; END IF;
    RETURN NULL;
  END IF;
  IF kind = 'string' AND (
    written !~ '^-?(0|[1-9][0-9]*)\.[0-9]+$' OR length(written) > 100
    OR length(ltrim(translate(rtrim(written, '0'), '-.', ''), '0')) > 15
  ) THEN RETURN NULL; END IF;
  number := written;
  -- -0e0 is 0 in the columns of tables.
  IF abs(number) <= 9007199254740991 THEN RETURN number + 0.0::double precision; END IF;
  RETURN NULL;
EXCEPTION WHEN data_exception THEN
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION json_real IS 'The value as double precision; null where it does not fit.';

-- Whether an item has a text at a path. What no text of PostgreSQL can hold is replaced before the item is read.
CREATE OR REPLACE FUNCTION json_has_text(item text, path text[]) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS $$
BEGIN
  RETURN json_typeof(regexp_replace(item, '\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\u0001', 'g')::json #> path) IS NOT DISTINCT FROM 'string';
EXCEPTION WHEN data_exception OR statement_too_complex THEN
  RETURN false;
END
$$;
COMMENT ON FUNCTION json_has_text IS 'Whether the item has a text at the path.';

-- Counted again at the end of the next full walk.
UPDATE sync_jobs SET columns_run = NULL;
