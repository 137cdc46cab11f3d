-- A list with a number that jsonb has no room for (1e200000) has elements, too.
CREATE OR REPLACE FUNCTION json_list(value text) RETURNS json LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS $$
BEGIN
  IF left(value, 1) <> '[' THEN RETURN NULL; END IF;
  -- A list is stored without what no text can hold (\u0000), and jsonb refuses that: then it is a text that looks like one.
  BEGIN
    PERFORM value::jsonb;
  EXCEPTION WHEN numeric_value_out_of_range THEN
    -- The same without the long numbers. In a text this takes digits behind one of these characters, and no escape.
    PERFORM regexp_replace(value, '([\[:,\s])-?\d(?:[\d.]*[eE][+-]?\d{4,}|[\d.eE+-]{200,})', '\10', 'g')::jsonb;
  END;
  RETURN value::json;
EXCEPTION WHEN data_exception OR statement_too_complex THEN
  RETURN NULL;
END
$$;
