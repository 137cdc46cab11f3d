-- The views of arrays can be read whatever a list holds, by tools that would read them in parallel too: with an EXCEPTION block a
-- function begins a subtransaction, which PostgreSQL 15 and 16 refuse in a parallel plan.
CREATE OR REPLACE FUNCTION json_list(value text) RETURNS json LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS $$
BEGIN
  IF left(value, 1) <> '[' THEN RETURN NULL; END IF;
  -- A list is stored without what no text can hold (\u0000), and jsonb refuses that: then it is a text that looks like one.
  PERFORM value::jsonb;
  RETURN value::json;
EXCEPTION WHEN data_exception OR statement_too_complex THEN
  RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION json_whole(value json) RETURNS bigint LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS $$
BEGIN
  RETURN (value #>> '{}')::numeric::bigint;
EXCEPTION WHEN data_exception THEN
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION json_whole IS 'The number as bigint; null where it is too large.';

CREATE OR REPLACE FUNCTION json_real(value json) RETURNS double precision LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS $$
BEGIN
  -- -0e0 is 0 in the columns of tables.
  RETURN (value #>> '{}')::double precision + 0.0::double precision;
EXCEPTION WHEN data_exception THEN
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION json_real IS 'The number as double precision; null where it is too large.';
