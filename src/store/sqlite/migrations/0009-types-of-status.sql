-- The view of which this step was is made after all steps now.
SELECT 1;
