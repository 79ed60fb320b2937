import pytest

pytest.register_assert_rewrite("tests.kube_contract")
